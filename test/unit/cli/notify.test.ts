import { expect, it } from 'vitest';
import type { CommandServices } from '../../../src/cli/command.ts';
import { withNotification } from '../../../src/cli/notify.ts';
import { localCommandFailed } from '../../../src/host/host-problems.ts';
import { fakeClock } from '../../support/fake-clock.ts';

it('the warning of a failed --notify does not repeat its command, which may have the URL of a webhook', async () => {
  const errors: string[] = [];
  const services = {
    clock: fakeClock(),
    hostname: 'laptop',
    output: { stderr: (text: string) => void errors.push(text) },
    runLocal: async (argv: readonly string[]) => {
      throw localCommandFailed(argv, { exitCode: 22, stderr: 'curl: (22) 404' });
    },
  } as unknown as CommandServices;
  const notify = 'curl --data-binary @- https://hooks.example/SECRET';
  expect(await withNotification(services, { notify, command: 'apply' }, async () => 0)).toBe(0);
  expect(errors).toEqual([
    'warning: the command of --notify failed: exited with code 22: curl: (22) 404. The result of the run is not affected. [NOTIFICATION_FAILED]\n',
  ]);
});
