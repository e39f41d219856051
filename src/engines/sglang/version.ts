// SGLang releases as the client must tell them apart; a development build has no usable number.

/** [major, minor, patch], or null for development builds and forks that do not say. */
export type Version = readonly [number, number, number] | null;

export function parseVersion(text: string | null | undefined): Version {
  const parts = /^v?(\d+)\.(\d+)\.(\d+)/
    .exec(text ?? '')
    ?.slice(1)
    .map(Number);
  if (!parts || parts.every((part) => part === 0)) return null;
  return parts as unknown as [number, number, number];
}

/** Unknown versions are at least nothing. */
export function atLeast(version: Version, ...wanted: readonly [number, number, number]): boolean {
  if (version === null) return false;
  const at = version.findIndex((part, i) => part !== wanted[i]);
  return at === -1 || (version[at] as number) > (wanted[at] as number);
}
