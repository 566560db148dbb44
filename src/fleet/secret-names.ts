const SECRET = /pass(?:word|phrase|wd)|(?:^|_)pass(?:_|$)|secret|(?:^|_)token(?:_|$)|vault|private_?key(?:_?data)?$|api_?key/i;

/** Tells whether a variable of this name may hold a secret: it is neither taken from an inventory nor shown. */
export function isSecretName(name: string): boolean {
  return SECRET.test(name);
}
