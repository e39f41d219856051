// Options of hosted search services, with their keys and endpoints checked before the run.
import { UsageError } from '../errors.js';
import { requireEndpoint } from './http/url.js';
import { asksLive, type Workshop } from './workshop.js';

export interface HostedOptions {
  readonly results: number;
  readonly key?: string;
  readonly baseUrl?: string;
  readonly language?: string;
  readonly country?: string;
}

/** `variable` is where a command line would take the key from, for the message. */
export function hosted(options: HostedOptions, defaultBaseUrl: string, provider: string, variable: string, workshop: Workshop) {
  const { results, key = '', baseUrl = defaultBaseUrl, language = 'en', country = 'us' } = options;
  if (key === '' && asksLive(workshop)) {
    throw new UsageError(`${provider} needs a key`, {
      expected: `one in ${variable}`,
      remedy: 'Without a key, replay a recording or search locally.',
    });
  }
  const { http, redactor } = workshop;
  return { http, redactor, key, baseUrl: requireEndpoint(baseUrl, `${provider} base URL`), results, language, country };
}
