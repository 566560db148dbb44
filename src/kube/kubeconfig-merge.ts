import type { Json, JsonObject } from '../base/json.ts';
import { isJsonObject } from '../base/json.ts';
import { parseSource, sourceToJson } from '../codec/source.ts';
import { KUBECONFIG_LIMITS, parseKubeconfig } from './kubeconfig.ts';

export interface KubeconfigText {
  readonly file: string;
  readonly text: string;
}

/** Members of an entry that are paths, relative to the folder of their file. */
const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/**
 * Merges the files of KUBECONFIG as kubectl does: the first file that defines an entry of a name, or a
 * current-context, wins.
 * @returns JSON text; its paths are relative to the working directory
 * @throws AppError as parseKubeconfig, with the position in the original file
 */
export function mergeKubeconfigs(files: readonly KubeconfigText[]): string {
  const roots = files.map(({ file, text }) => {
    parseKubeconfig(text, file);
    const root = parseSource(text, file, KUBECONFIG_LIMITS).documents.find((document) => document.root !== null)?.root ?? null;
    return { file, root: (root === null ? {} : sourceToJson(root)) as JsonObject };
  });
  const list = (name: string, member: string): readonly Json[] => {
    const found = new Map<string, Json>();
    for (const { file, root } of roots)
      for (const entry of Array.isArray(root[name]) ? root[name].filter(isJsonObject) : [])
        if (!found.has(String(entry.name))) found.set(String(entry.name), { ...entry, [member]: withPaths(entry[member], file) });
    return [...found.values()];
  };
  const contexts = roots.map(({ root }) => root['current-context']);
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': contexts.find((context) => typeof context === 'string' && context !== '') ?? '',
    clusters: list('clusters', 'cluster'),
    contexts: list('contexts', 'context'),
    users: list('users', 'user'),
  });
}

function withPaths(value: Json | undefined, file: string): Json {
  if (!isJsonObject(value)) return value ?? {};
  const place = (path: Json): Json =>
    typeof path !== 'string' || path === '' || path.startsWith('/') ? path : `${file.slice(0, file.lastIndexOf('/') + 1)}${path}`;
  const moved = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, PATHS.includes(name) ? place(member) : member]));
  const { exec } = moved;
  if (!isJsonObject(exec) || typeof exec.command !== 'string' || !exec.command.includes('/')) return moved;
  return { ...moved, exec: { ...exec, command: place(exec.command) } };
}
