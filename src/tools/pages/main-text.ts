// The readable part of a page as plain text with light Markdown: no scripts, menus, pictures or link addresses.
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';

export interface MainText {
  readonly title: string | null;
  readonly text: string;
}

/** Deeper or larger documents are not worth the minutes they would take. */
const MOST_ELEMENTS = 50_000;

/** Null where the page has no readable text. Scripts are never run. */
export function mainText(html: string): MainText | null {
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`);
  for (const element of document.querySelectorAll('script, style, noscript, template, iframe, svg')) element.remove();
  if (document.querySelectorAll('*').length > MOST_ELEMENTS) return null;
  const title = document.title.replace(/\s+/g, ' ').trim();
  // Readability changes the document, and gives up on pages without paragraphs.
  const whole = document.body?.innerHTML ?? '';
  const article = new Readability(document as never, { charThreshold: 200 }).parse();
  const text = toText(article?.content ?? whole);
  return text === '' ? null : { title: article?.title?.trim() || title || null, text };
}

function toText(html: string): string {
  const turndown = new TurndownService({ headingStyle: 'atx', bulletListMarker: '-', codeBlockStyle: 'fenced' })
    .remove(['script', 'style', 'noscript', 'form', 'button', 'input', 'select'])
    .addRule('pictures', { filter: ['img', 'picture', 'video', 'audio', 'canvas', 'object', 'embed'], replacement: () => '' })
    .addRule('links', { filter: 'a', replacement: (content) => content })
    .addRule('cells', { filter: ['td', 'th'], replacement: (content) => `${content.trim()} | ` })
    .addRule('rows', { filter: 'tr', replacement: (content) => `${content.replace(/ \| $/, '').trim()}\n` });
  return unescapeMarkdown(turndown.turndown(html))
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/** Nobody renders the text: `snake\_case` would only be noise to a model. */
function unescapeMarkdown(text: string): string {
  return text.replace(/\\([\\`*_{}[\]()#+\-.!>~|=])/g, '$1');
}
