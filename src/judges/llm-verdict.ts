// A judge model's reply as a verdict: the one word it was told to write, or nothing. A guess would be a wrong number.

/** True for correct, false for wrong, null when there is no verdict or there are contradicting ones. Thoughts do not count. */
export function readVerdict(reply: string): boolean | null {
  const said = reply.replace(/<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>/gi, '');
  // A thought that was cut off has no verdict behind it.
  if (/<think(?:ing)?>/i.test(said)) return null;
  const words = new Set(
    [...said.matchAll(/<verdict>\s*(correct|wrong)\s*<\/verdict>/gi)].map((match) => match[1]?.toLowerCase()),
  );
  return words.size === 1 ? words.has('correct') : null;
}
