import { isJsonObject } from '../../src/base/json.ts';
import { upTo } from '../../src/base/text/up-to.ts';
import { readYaml } from '../../src/kube/same-yaml.ts';

/** The image tag of a component in its manifest (`v1.36.2`); null without a tag. */
export function manifestVersion(text: string, component: string): string | null {
  const pod = readYaml(text);
  const spec = isJsonObject(pod) && isJsonObject(pod.spec) ? pod.spec : {};
  const containers = Array.isArray(spec.containers) ? spec.containers.filter(isJsonObject) : [];
  const image = containers.find(({ name }) => name === component)?.image;
  return typeof image === 'string' ? (/^:(v[^:/@]+)$/.exec(tagOf(image))?.[1] ?? null) : null;
}

/** `:v1.36.2` of `registry:5000/name:v1.36.2@sha256:…`. */
function tagOf(image: string): string {
  const name = upTo(image, '@');
  return name.slice(Math.max(name.lastIndexOf(':'), 0));
}
