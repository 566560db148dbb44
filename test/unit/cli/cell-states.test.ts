import { expect, it } from 'vitest';
import { joinLines, renderText } from '../../../src/base/text/styled.ts';
import { withCellStates } from '../../../src/cli/output/state-words.ts';

const shown = (line: string, colours: boolean): string => renderText(joinLines([withCellStates(line)]), colours).trimEnd();

it('cells that need attention have colours, and words of other cells have none', () => {
  expect(shown('node1  NotReady,SchedulingDisabled  v1.36.2', true)).toBe(
    'node1  \u001b[31mNotReady\u001b[0m,\u001b[33mSchedulingDisabled\u001b[0m  v1.36.2',
  );
  expect(shown('node1  Ready  the unit failed to start', true)).toBe('node1  Ready  the unit failed to start');
  expect(shown('node1  unreachable', true)).toContain('\u001b[31munreachable');
  expect(shown('node1  unreachable', false)).toBe('node1  unreachable');
});
