import { expect, it } from 'vitest';
import { NEWEST_KUBERNETES_MINOR } from '../../../src/cli/kubelet-config-commands.ts';
import { formatMinor, NEWEST_MINOR } from '../../../src/kubelet/catalogue.ts';

it('has the newest minor of the catalogue in its help', () => {
  expect(NEWEST_KUBERNETES_MINOR).toBe(formatMinor(NEWEST_MINOR));
});
