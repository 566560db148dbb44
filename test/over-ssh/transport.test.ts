import { describe, it } from 'vitest';
import { localTransport } from '../../src/host/adapters/transport-local.ts';
import { opensshWorld, sshdWorld } from '../contract/ssh-worlds.ts';
import { transportContract } from '../contract/transport.ts';
import { requirement } from '../support/requirement.ts';
import { sshdMissing } from '../support/sshd.ts';

transportContract('local', async () => ({ open: () => localTransport(), stop: async () => undefined }));

// Other servers and login shells: test/slow/transport.test.ts.
if (sshdMissing === null) {
  transportContract("the system's ssh", () => opensshWorld([]));
  transportContract('SSH to OpenSSH', () => sshdWorld([]));
} else {
  describe.skipIf(requirement('SSH to OpenSSH', sshdMissing))('transport SSH to OpenSSH', () => it('is not tested', () => undefined));
}
