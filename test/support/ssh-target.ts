import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SshTarget } from '../../src/ssh/target.ts';

export interface TargetInput extends Partial<SshTarget> {
  readonly port: number;
  /** The directory for the known_hosts file. */
  readonly directory: string;
  /** Types and keys known for 127.0.0.1 and this port. */
  readonly known?: readonly string[];
}

/** A target on the loopback that reads no file outside of the test's directory. */
export function sshTargetFor(input: TargetInput): SshTarget {
  const { directory, known, ...rest } = input;
  const file = join(directory, `known_hosts_${rest.name ?? rest.port}`);
  if (known !== undefined) writeFileSync(file, known.map((key) => `[127.0.0.1]:${rest.port} ${key}\n`).join(''));
  return {
    name: 'node-1',
    hostName: '127.0.0.1',
    user: 'tester',
    identityFiles: [],
    identitiesOnly: false,
    identityAgent: null,
    proxyJump: [],
    userKnownHostsFiles: [file],
    globalKnownHostsFiles: [],
    strictHostKeyChecking: 'yes',
    hostKeyAlias: null,
    hashKnownHosts: false,
    connectTimeoutMs: 60_000,
    addressFamily: 'any',
    bindAddress: null,
    warnings: [],
    ...rest,
  };
}
