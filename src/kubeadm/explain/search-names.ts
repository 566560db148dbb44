import { formatMinor } from '../../kubelet/catalogue.ts';
import type { ExplainOptions, Matches } from './explanation.ts';
import { typeText } from './type-text.ts';

/**
 * Searches the fields, flags and feature gates of one kubelet version for names that contain a text. Case, dashes and
 * underscores are ignored: `failswap` finds `failSwapOn` and `--fail-swap-on`.
 * @returns null when no name contains it
 */
export function searchNames(text: string, { catalogue, minor }: ExplainOptions): Matches | null {
  const wanted = plain(text);
  const contains = (name: string): boolean => plain(name).includes(wanted);
  const fields = [...catalogue.fields.values()].flatMap(({ path, description }) => {
    const field = contains(path) ? catalogue.field(path, minor) : null;
    return field === null ? [] : [{ path, type: typeText(field.type), description, default: field.default }];
  });
  const flags = [...catalogue.flags.keys()].filter((name) => contains(name) && catalogue.flag(name, minor) !== null);
  const gates = [...catalogue.gates.keys()].filter((name) => contains(name) && catalogue.gate(name, minor) !== null);
  if (wanted === '' || fields.length + flags.length + gates.length === 0) return null;
  return {
    kind: 'Matches',
    text,
    kubernetesVersion: formatMinor(minor),
    fields,
    flags: flags.map((name) => ({ name, field: catalogue.flags.get(name)?.field ?? null })),
    featureGates: gates.map((name) => ({ name, stage: catalogue.gate(name, minor)?.stage ?? null })),
  };
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_[\]]/g, '');
}
