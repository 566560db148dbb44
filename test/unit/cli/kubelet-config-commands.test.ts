import { expect, it } from 'vitest';
import { DEFAULT_KUBERNETES_MINOR, NEWEST_KUBERNETES_MINOR } from '../../../src/cli/help-layout.ts';
import { DEFAULT_MINOR, formatMinor, NEWEST_MINOR } from '../../../src/kubelet/catalogue/catalogue.ts';

it('has the newest minor of the catalogue in its help', () => {
  expect([DEFAULT_KUBERNETES_MINOR, NEWEST_KUBERNETES_MINOR]).toEqual([formatMinor(DEFAULT_MINOR), formatMinor(NEWEST_MINOR)]);
});
