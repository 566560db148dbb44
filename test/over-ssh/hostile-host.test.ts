import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { sshShared, sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';

import { hostileHostContract } from '../contract/hostile-host.ts';

// The system's ssh: test/slow/hostile-host.test.ts.
hostileHostContract('built-in client', (target) => sshTransport(target, { hostKeys: knownHostsStore(), shared: sshShared() }));
