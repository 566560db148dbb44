import type { Arg } from '../base/arg.ts';
import type { Json } from '../base/json.ts';
import type { Warning } from '../host/plan/change.ts';
import type { Catalogue, Minor } from './catalogue.ts';
import { type LayeredConfig, leavesOf } from './layers.ts';

/**
 * Warnings about command-line flags of the kubelet that override a configured field: the file then does not
 * show the effective value.
 * @see kubelet: flags are applied over the configuration file
 */
export function shadowedFields(
  commandLine: readonly Arg[],
  layered: LayeredConfig,
  minor: Minor,
  catalogue: Catalogue,
): readonly Warning[] {
  const last = new Map(commandLine.map((flag) => [flag.name, flag.value]));
  return [...last].flatMap(([name, value]): Warning[] => {
    const field = catalogue.flag(name, minor)?.field ?? null;
    if (field === null) return [];
    const set = [...leavesOf(layered.config)].filter(
      ([path]) => path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`),
    );
    const reported = set.find(
      ([path, leaf]) => layered.history.get(path)?.at(-1)?.origin.layer !== 'kubelet default' && asFlag(leaf) !== value,
    );
    if (reported === undefined) return [];
    const message = `--${name}=${value} on the kubelet's command line overrides ${field}: ${JSON.stringify(reported[1])} of the configuration file`;
    return [{ code: 'FLAG_SHADOWS_FIELD', field, message }];
  });
}

/**
 * A value in the form of its flag; values built from objects (`registerWithTaints`) only equal themselves.
 */
function asFlag(leaf: Json): string {
  const isPlain = [leaf].flat().every((item) => typeof item !== 'object' || item === null);
  return isPlain ? String(leaf) : JSON.stringify(leaf);
}
