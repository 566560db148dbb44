import { expect, it } from 'vitest';
import { NEWEST } from '../../../src/cli/knowledge-commands.ts';
import { formatMinor, NEWEST_MINOR } from '../../../src/kubelet/catalogue.ts';

it('has the newest minor of the catalogue in its help', () => {
  expect(NEWEST).toBe(formatMinor(NEWEST_MINOR));
});
