import { expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { controlPlaneMember } from '../../../../src/fleet/use-cases/fleet-members.ts';
import type { Host } from '../../../../src/host/access/host.ts';
import { parseEqualTextsOnce } from '../../../../src/host/facts/parse-text.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

type Arguments = Parameters<typeof controlPlaneMember>;

it('closes the connection of the inspection if a control plane cannot be opened again', async () => {
  const lost = new AppError({ code: 'HOST_CONNECTION_LOST', message: 'the connection was lost' });
  const failing = async (): Promise<never> => {
    throw lost;
  };
  let closed = 0;
  const connection = { name: 'cp1', query: failing, close: async () => void closed++ } as unknown as Host;
  const input = {
    common: { name: 'cp1', cluster: fakeCluster(), clock: fakeClock(), connect: failing },
    planOf: () => failing,
    join: { nodeRegistration: {} },
    settings: { init: {} },
  } as unknown as Arguments[1];
  const member = controlPlaneMember({} as Arguments[0], input, failing);
  const ports = { parseText: parseEqualTextsOnce(), reporter: recordingReporter(), signal: new AbortController().signal };
  await expect(member.open({ ...ports, connection, isInspection: false })).rejects.toBe(lost);
  expect(closed).toBe(1);
});
