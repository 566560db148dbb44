import { type Style, styled, type Text } from '../../base/text/styled.ts';
import { type MemberOutcome, outcomeText } from '../../maintenance/member-outcome.ts';

/** Colours of the results of hosts and Nodes on a terminal. */
export const STATE_STYLES: Readonly<Partial<Record<MemberOutcome, Style>>> = {
  changed: 'green',
  failed: 'red',
  refused: 'red',
  'rolled-back': 'red',
  'not-rolled-back': 'red',
  unreachable: 'yellow',
  'not-started': 'yellow',
  interrupted: 'yellow',
};

const STYLES = new Map(Object.entries(STATE_STYLES).map(([state, style]) => [outcomeText(state as MemberOutcome), style]));
const WORDS = new RegExp(`\\b(${[...STYLES.keys()].toSorted((a, b) => b.length - a.length).join('|')})\\b`);

/** A text of the program, with its state words in their colours; `limit`: only the first ones. */
export function withStates(text: string, limit = Number.POSITIVE_INFINITY): Text {
  let left = limit;
  return text.split(WORDS).map((part) => {
    const style = STYLES.get(part);
    return style === undefined || left-- <= 0 ? part : styled(style, part);
  });
}

/** States of hosts and Nodes in cells of tables that need attention. Other states have no colour. */
const CELL_STYLES: Readonly<Record<string, Style>> = {
  NotReady: 'red',
  unhealthy: 'red',
  unreachable: 'red',
  failed: 'red',
  bad: 'red',
  'rolled-back': 'red',
  expired: 'red',
  unknown: 'yellow',
  'not-synced': 'yellow',
  SchedulingDisabled: 'yellow',
};
/** A line of a table, with the cells that need attention in their colours. */
export function withCellStates(line: string): Text {
  return line.split(/( {2,}|,)/).map((part) => {
    const style = CELL_STYLES[part];
    return style === undefined ? part : styled(style, part);
  });
}
