import type { Json, JsonObject } from '../../base/json.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { textAt } from '../documents/values.ts';
import { setAt } from '../layers/kubeadm-defaults.ts';

/**
 * Fields with a path, and the first minor that resolves a relative path against the directory of the file.
 */
const PATH_FIELDS: readonly (readonly [string, Minor])[] = [
  ['staticPodPath', 0],
  ['authentication.x509.clientCAFile', 0],
  ['tlsCertFile', 0],
  ['tlsPrivateKeyFile', 0],
  ['resolvConf', 0],
  ['volumePluginDir', 20],
  ['podLogsDir', 30],
];

/**
 * Makes the relative paths of a configuration absolute, as the kubelet does when it loads the file.
 * @param file absolute path of the file
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/configfiles (1.20 to 1.36)
 */
export function resolveRelativePaths(config: JsonObject, file: string, minor: Minor): JsonObject {
  const directory = file.slice(0, file.lastIndexOf('/'));
  return PATH_FIELDS.reduce((current, [path, since]) => {
    const value = textAt(current, path);
    return value === '' || value.startsWith('/') || minor < since
      ? current
      : setAt(current, path.split('.'), cleanPath(`${directory}/${value}`));
  }, config);
}

/**
 * Whether a path is resolved against the directory of the file in this minor, but as a flag against the
 * kubelet's working directory.
 */
export function isRelativePath(path: string, value: Json, minor: Minor): boolean {
  const since = PATH_FIELDS.find(([field]) => field === path)?.[1];
  return since !== undefined && minor >= since && typeof value === 'string' && value !== '' && !value.startsWith('/');
}

/** Removes `.`, `..` and double slashes, like Go's path/filepath.Clean. */
function cleanPath(path: string): string {
  const steps: string[] = [];
  for (const step of path.split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return `/${steps.join('/')}`;
}
