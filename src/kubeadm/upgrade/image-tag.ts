import { upTo } from '../../base/text/up-to.ts';

/** The tag of an image: `v1.36.2` of `registry:5000/name:v1.36.2@sha256:…`; empty without a tag. */
export function imageTag(image: string): string {
  const name = upTo(image, '@');
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(colon + 1) : '';
}
