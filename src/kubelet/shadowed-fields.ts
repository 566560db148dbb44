import type { Arg } from '../base/arg.ts';
import type { Json } from '../base/json.ts';
import type { Warning } from '../host/plan/change.ts';
import type { Catalogue, Minor } from './catalogue.ts';
import { type LayeredConfig, leavesOf } from './layers.ts';

/**
 * Flags on the kubelet's command line that win over a field somebody set: the file then does not say what is in force.
 * @see kubelet: flags are applied over the configuration file
 */
export function shadowedFields(
  commandLine: readonly Arg[],
  layered: LayeredConfig,
  minor: Minor,
  catalogue: Catalogue,
): readonly Warning[] {
  const last = new Map(commandLine.map((flag) => [flag.name, flag.value]));
  const leaves = leavesOf(layered.config);
  return [...last].flatMap(([name, value]): Warning[] => {
    const field = catalogue.flag(name, minor)?.field ?? null;
    if (field === null) return [];
    const set = [...leaves].filter(([path]) => path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`));
    const reported = set.find(
      ([path, leaf]) => layered.history.get(path)?.at(-1)?.origin.layer !== 'kubelet default' && asFlag(leaf) !== value,
    );
    if (reported === undefined) return [];
    const message = `--${name}=${value} on the kubelet's command line wins over ${field}: ${JSON.stringify(reported[1])} of the configuration file`;
    return [{ code: 'FLAG_SHADOWS_FIELD', field, message }];
  });
}

/** A value as its flag has it; what is made of objects (`registerWithTaints`) only looks like itself. */
function asFlag(leaf: Json): string {
  const isPlain = [leaf].flat().every((item) => typeof item !== 'object' || item === null);
  return isPlain ? String(leaf) : JSON.stringify(leaf);
}
