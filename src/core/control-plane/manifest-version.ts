import { isJsonObject } from '../json.ts';
import { readYaml } from '../kubernetes/same-yaml.ts';

/** The tag of the image of a component (`v1.36.2`), as its manifest says; null where none can be read. */
export function manifestVersion(text: string, component: string): string | null {
  const pod = readYaml(text);
  const spec = isJsonObject(pod) && isJsonObject(pod.spec) ? pod.spec : {};
  const containers = Array.isArray(spec.containers) ? spec.containers.filter(isJsonObject) : [];
  const image = containers.find(({ name }) => name === component)?.image;
  return typeof image === 'string' ? (/:(v[^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? null) : null;
}
