import { opensshTransport } from '../../src/ssh/adapters/transport-openssh.ts';
import { hostileHostContract } from '../contract/hostile-host.ts';

hostileHostContract("system's ssh", (target) => opensshTransport(target, { configFile: 'none' }));
