import { describe, it } from 'vitest';
import { localTransport } from '../../src/host/adapters/transport-local.ts';
import { requirement } from '../support/requirement.ts';
import { sshdMissing } from '../support/sshd.ts';
import { opensshWorld, sshdWorld } from './ssh-worlds.ts';
import { transportContract } from './transport.ts';

transportContract('local', async () => ({ open: () => localTransport(), stop: async () => undefined }));

// Other servers and login shells: test/slow/transport.test.ts.
if (sshdMissing === null) {
  transportContract("the system's ssh", () => opensshWorld([]));
  transportContract('SSH to OpenSSH', () => sshdWorld([]));
} else {
  describe.skipIf(requirement('SSH to OpenSSH', sshdMissing))('transport SSH to OpenSSH', () => it('is not tested', () => undefined));
}
