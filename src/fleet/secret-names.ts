const SECRET = /pass(?:word|phrase|wd)|(?:^|_)pass(?:_|$)|secret|(?:^|_)token(?:_|$)|vault|private_?key(?:_?data)?$|api_?key/i;

/** Whether a variable of this name may hold a secret: such variables are neither imported nor shown. */
export function isSecretName(name: string): boolean {
  return SECRET.test(name);
}
