import type { Problem } from '../../base/errors.ts';
import * as read from './flag-values.ts';
import { type FlagReader, type FlagValue, isProblem } from './flag-values.ts';
import type { InitConfiguration, ModelSet, NodeRegistration } from './model.ts';

/** Applies a flag: returns the changed models and the set paths, or the problem of its value. */
export type ApplyFlag = (models: ModelSet, value: FlagValue) => { readonly models: ModelSet; readonly paths: readonly string[] } | Problem;

/** Flags and positional arguments by name, applied in this order, so that later ones win. */
export type FlagTable = Readonly<Record<string, ApplyFlag>>;

/** A flag that sets one member; `path` is the member's, with its kind. */
export function sets<T>(path: string, reader: FlagReader<T>, put: (models: ModelSet, value: T) => ModelSet): ApplyFlag {
  return (models, value) => {
    const parsed = reader(value);
    return isProblem(parsed) ? parsed : { models: put(models, parsed as T), paths: [path] };
  };
}

/** Merges two lists of ids, ignoring case. */
export function union(a: readonly string[] = [], b: readonly string[] = []): readonly string[] {
  return [...new Map([...a, ...b].map((id) => [id.toLowerCase(), id])).values()];
}

/** Flags about the node, shared by `init` and `join`. */
export function nodeFlags(kind: 'InitConfiguration' | 'JoinConfiguration', member: 'init' | 'join'): FlagTable {
  const at = `${kind}.nodeRegistration`;
  const inNode = (models: ModelSet, node: NodeRegistration): ModelSet => {
    const before = models[member];
    return { ...models, [member]: { ...before, nodeRegistration: { ...before?.nodeRegistration, ...node } } };
  };
  const inModel = (models: ModelSet, part: Pick<InitConfiguration, 'patches' | 'skipPhases' | 'dryRun'>): ModelSet => ({
    ...models,
    [member]: { ...models[member], ...part },
  });
  return {
    'node-name': sets(`${at}.name`, read.text, (models, name) => inNode(models, { name })),
    'cri-socket': sets(`${at}.criSocket`, read.text, (models, criSocket) => inNode(models, { criSocket })),
    'ignore-preflight-errors': sets(`${at}.ignorePreflightErrors`, read.list, (models, ids) =>
      inNode(models, { ignorePreflightErrors: union(models[member]?.nodeRegistration?.ignorePreflightErrors, ids) }),
    ),
    patches: sets(`${kind}.patches.directory`, read.text, (models, directory) => inModel(models, { patches: { directory } })),
    'skip-phases': sets(`${kind}.skipPhases`, read.list, (models, skipPhases) => inModel(models, { skipPhases })),
    'dry-run': sets(`${kind}.dryRun`, read.boolean, (models, dryRun) => inModel(models, { dryRun })),
  };
}
