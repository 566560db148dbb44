import { defineFact } from '../../host/facts/fact.ts';
import { KUBELET_CONF_D } from '../../kube/well-known.ts';

/** The names in the directory of drop-in files. */
export const CONFIG_DROP_IN_NAMES = defineFact({ names: { kind: 'list', path: KUBELET_CONF_D } }, ({ names }) => names ?? []);

/** Explains the directory to its readers. The kubelet reads only files that end in `.conf`. */
export const CONFIG_DROP_INS_README = `${KUBELET_CONF_D}/README.kubeletadm`;

const OWN_CONFIG_DROP_IN = /^[0-9]{2}-kubeletadm-[\w.-]+\.conf$/;

/**
 * The path of the drop-in file of a layer. Drop-in files are merged in byte order of their names.
 * @param number 10 to 79
 * @param layer e.g. `baseline`, `group edge`
 */
export function ownConfigDropInPath(number: number, layer: string): string {
  return `${KUBELET_CONF_D}/${number}-kubeletadm-${layer.replace(/[^\w.-]+/g, '-')}.conf`;
}

/** Whether kubeletadm wrote the file at this path; other drop-in files belong to the administrator of the host. */
export function isOwnConfigDropIn(path: string): boolean {
  if (path === CONFIG_DROP_INS_README) return true;
  return path.startsWith(`${KUBELET_CONF_D}/`) && OWN_CONFIG_DROP_IN.test(path.slice(KUBELET_CONF_D.length + 1));
}

/** The own files among the names in the directory. */
export function ownConfigDropInPaths(names: readonly string[]): readonly string[] {
  return names.map((name) => `${KUBELET_CONF_D}/${name}`).filter(isOwnConfigDropIn);
}
