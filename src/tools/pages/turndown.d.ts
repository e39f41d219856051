// The part of turndown that is used; the package brings no types.
declare module 'turndown' {
  export default class TurndownService {
    constructor(options?: {
      headingStyle?: 'setext' | 'atx';
      bulletListMarker?: '-' | '*' | '+';
      codeBlockStyle?: 'indented' | 'fenced';
    });
    remove(tags: readonly string[]): this;
    addRule(name: string, rule: { filter: string | string[]; replacement: (content: string) => string }): this;
    turndown(html: string): string;
  }
}
