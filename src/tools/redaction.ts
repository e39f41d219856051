// Keys must not reach records, messages or the model: known values wherever they stand, and whatever an address calls a key.

/** Query parameters that carry credentials, presigned ones included. */
const CREDENTIAL =
  /([?&;](?:[\w-]*api[_-]?key|key|token|[\w-]*access[_-]?token|secret|password|sig|signature|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential))=)[^&#\s"'<>\\]+/gi;
const MARK = '[redacted]';
/** Shorter values would blacken ordinary words. */
const LEAST_LENGTH = 8;

export interface Redactor {
  /** Known secrets only: for results, whose addresses must stay what they are. */
  secrets(text: string): string;
  /** Known secrets and credential parameters: for raw replies, addresses and messages. */
  all(text: string): string;
}

/** `secrets` are keys as configured; their URL-encoded and base64 forms are found as well. */
export function createRedactor(secrets: readonly string[]): Redactor {
  const forms = secrets
    .filter((secret) => secret.length >= LEAST_LENGTH)
    .flatMap((secret) => [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')])
    // A longer form may contain a shorter one.
    .sort((a, b) => b.length - a.length);
  const replaceSecrets = (text: string): string => forms.reduce((safe, form) => safe.replaceAll(form, MARK), text);
  return {
    secrets: replaceSecrets,
    all: (text) => replaceSecrets(text).replace(CREDENTIAL, `$1${MARK}`),
  };
}
