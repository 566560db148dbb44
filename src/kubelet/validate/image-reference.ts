const DOMAIN_PART = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const DOMAIN = `(?:${DOMAIN_PART}(?:\\.${DOMAIN_PART})*|\\[(?:[a-fA-F0-9:]+)\\])(?::[0-9]+)?`;
const PATH_PART = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const PATH = `${PATH_PART}(?:/${PATH_PART})*`;
const REFERENCE = new RegExp(
  `^((?:(${DOMAIN})/)?(${PATH}))(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`,
);
const MAX_PATH = 255;

/**
 * The reason why a text is not an image name without tag or digest: a clause, or null if valid.
 * @see github.com/distribution/reference (the grammar of its Parse)
 */
export function faultOfImageName(text: string): string | null {
  if (text.length > 4096) return 'is too long for an image name';
  const match = REFERENCE.exec(text);
  if (match === null) return REFERENCE.test(text.toLowerCase()) ? 'must be in lower case' : 'is not an image name';
  const [, , , path = '', tag, digest] = match;
  if (tag !== undefined || digest !== undefined) return `must have no ${digest === undefined ? 'tag' : 'digest'}`;
  return path.length > MAX_PATH ? 'is too long for an image name' : null;
}

/** Whether a name includes the host of its registry, so that normalization does not change it. */
export function nameHasRegistry(name: string): boolean {
  const slash = name.indexOf('/');
  if (slash === -1) return false;
  const host = name.slice(0, slash);
  const isHost = /[.:]/.test(host) || host === 'localhost' || host.toLowerCase() !== host;
  if (!isHost || host === 'index.docker.io') return false;
  return host !== 'docker.io' || name.slice(slash + 1).includes('/');
}
