// What is asked over HTTP, with its limits, and what comes back.

export interface HttpRequest {
  /** Whose limits, budget and figures the request counts against. */
  readonly provider: string;
  readonly url: URL;
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** `configured`: an address that the user gave. `outside`: one that came from the web, which must be public at every redirect. */
  readonly origin: 'configured' | 'outside';
  /** Media types that are read; every type where absent. */
  readonly accepts?: RegExp;
  readonly maxBytes: number;
  /** Limit of one try, from the connection to the last byte. */
  readonly timeoutMs: number;
  /** Tries in all; the client's own where absent. */
  readonly attempts?: number;
  /** Counts against the budget. */
  readonly paid?: boolean;
}

export interface HttpReply {
  /** Final address, redacted. */
  readonly url: string;
  readonly status: number;
  readonly mediaType: string;
  /** As the content type names it, or null. */
  readonly charset: string | null;
  readonly bytes: Uint8Array;
}
