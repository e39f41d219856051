// The keys of one object in a JSON text, as written: JSON.parse drops repeated keys and reorders those that look like integers.

/** Keys of the object under `property` of the top-level object, in file order, repeats included. `source` must be valid JSON. */
export function topLevelKeys(source: string, property: string): string[] {
  const keys: string[] = [];
  const path: string[] = [];
  let expectsKey = false;
  for (const [token] of source.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g)) {
    if (token === '{' || token === '[') {
      path.push('');
      expectsKey = token === '{';
    } else if (token === '}' || token === ']') {
      path.pop();
      expectsKey = false;
    } else if (token === ',') {
      expectsKey = path.at(-1) !== '';
    } else if (token !== ':' && expectsKey) {
      const key = JSON.parse(token) as string;
      path[path.length - 1] = `.${key}`;
      if (path.length === 2 && path[0] === `.${property}`) keys.push(key);
      expectsKey = false;
    }
  }
  return keys;
}
