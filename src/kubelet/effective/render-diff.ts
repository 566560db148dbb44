import { joinLines } from '../../base/text/styled.ts';
import { renderTable } from '../../base/text/table.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { formatMinor } from '../catalogue/catalogue.ts';
import type { ConfigDiff, ConfigSide, FieldDifference, SideValue } from '../diff/diff-configs.ts';
import { masked } from './field-changes.ts';

/** Renders a comparison as a table with the highest impact below. */
export function renderDiff({ differences, worst }: ConfigDiff, a: ConfigSide, b: ConfigSide): string {
  const sides = `${a.name} (kubelet ${formatMinor(a.minor)}) and ${b.name} (kubelet ${formatMinor(b.minor)})`;
  if (worst === null) return `${sides}: no effective difference\n`;
  const rows = differences.map((one) => [one.path, sideText(one.path, one.before), sideText(one.path, one.after), classText(one)]);
  const count = differences.length === 1 ? '1 field differs' : `${differences.length} fields differ`;
  return joinLines([
    ...renderTable([['FIELD', a.name, b.name, 'LIVE CHANGE'], ...rows]),
    '',
    `${sides}: ${count}; highest impact: ${worst}`,
  ]);
}

function sideText(path: string, side: SideValue): string {
  const text = inlineValue(shownSide(path, side).value);
  return side.isDefault ? `${text} (default)` : text;
}

/** A value without credentials; unset values stay unset. */
function shownSide(path: string, { value, isDefault }: SideValue): SideValue {
  return { value: value === undefined ? value : masked(path, value), isDefault };
}

function classText(difference: FieldDifference): string {
  return `${difference.class}: ${difference.reason}${difference.nodeSpecific ? ' (host-specific)' : ''}`;
}

/** A comparison as a document; unset values are omitted. */
export function diffDocument({ differences, worst }: ConfigDiff, a: ConfigSide, b: ConfigSide): object {
  return {
    before: { name: a.name, kubernetesVersion: formatMinor(a.minor) },
    after: { name: b.name, kubernetesVersion: formatMinor(b.minor) },
    worst,
    differences: differences.map(({ path, before, after, class: liveChange, reason, nodeSpecific }) => ({
      path,
      before: shownSide(path, before),
      after: shownSide(path, after),
      liveChange,
      reason,
      nodeSpecific,
    })),
  };
}
