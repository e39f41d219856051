// The thread that reads pages: an HTML string in, its main text or the error's message out.
import { parentPort } from 'node:worker_threads';
import { type MainText, mainText } from './main-text.js';

export type ReadPage = { readonly page: MainText | null } | { readonly error: string };

parentPort?.on('message', (html: string) => {
  parentPort?.postMessage(read(html));
});
// Ready.
parentPort?.postMessage(null);

function read(html: string): ReadPage {
  try {
    return { page: mainText(html) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
