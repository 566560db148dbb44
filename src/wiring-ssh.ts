import { resolve } from 'node:path';
import type { FleetHostTarget } from './fleet/host-target.ts';
import type { Transport } from './host/transport.ts';
import type { HostKeyPolicy } from './ssh/adapters/built-in/host-key-check.ts';
import type { HostKeys } from './ssh/host-keys.ts';
import type { SshConfig, SshOverrides } from './ssh/resolve-target.ts';
import type { SshOptions, SshTarget } from './ssh/target.ts';

/**
 * SSH access to all hosts of the process: shared parts (configuration, known hosts, private keys, jump hosts)
 * are read, requested and connected once. The SSH code is loaded with the first connection.
 */
export interface SshAccess {
  /** @param route an SSH destination, or a host of a fleet */
  transport(route: string | FleetHostTarget, ssh: SshOptions, limit: { readonly commandTimeoutMs: number | undefined }): Promise<Transport>;
  hostKeys(ssh: SshOptions): Promise<HostKeys>;
}

/**
 * Creates the SSH access of this process.
 * @param notify receives warnings, line by line
 */
export function sshAccess(env: Readonly<Record<string, string | undefined>>, notify: (line: string) => void): SshAccess {
  const configs = new Map<string | undefined, Promise<SshConfig>>();
  let parts: ReturnType<typeof load> | null = null;
  const loaded = (): ReturnType<typeof load> => {
    parts ??= load(env, notify);
    return parts;
  };
  const readConfig = async (configFile: string | undefined): Promise<SshConfig> => {
    const present = configs.get(configFile);
    if (present !== undefined) return present;
    const { loadSshConfig } = await import('./ssh/adapters/ssh-config.ts');
    const reading = configs.get(configFile) ?? loadSshConfig({ variables: env, configFile });
    configs.set(configFile, reading);
    return reading;
  };
  return {
    transport: async (route, ssh, limit) => {
      const [config, { connect, asRoot, showWarnings }] = await Promise.all([readConfig(ssh.configFile), loaded()]);
      const isOpenssh = ssh.transport === 'openssh' || (typeof route !== 'string' && route.ssh.transport === 'openssh');
      const client = isOpenssh ? 'openssh' : 'builtin';
      const target = await resolveTarget(route, config, { ...sshOverrides(ssh), client });
      showWarnings(target);
      // As with the ssh client, an escalation method on the command line applies to all hosts.
      const become = typeof route === 'string' || (ssh.become ?? 'auto') !== 'auto' ? (ssh.become ?? 'auto') : route.ssh.become;
      const { sudoPassword } = ssh;
      return asRoot(await connect(client, target, ssh), { become, ...limit, sudoPassword });
    },
    hostKeys: async (ssh) => {
      const [config, { known, showWarnings }, { sshHostKeys }] = await Promise.all([
        readConfig(ssh.configFile),
        loaded(),
        import('./ssh/adapters/built-in/host-keys.ts'),
      ]);
      const keys = sshHostKeys(config, sshOverrides(ssh), { hostKeys: known, ...credentials(ssh) });
      return {
        ...keys,
        inspect: (target, signal) => {
          showWarnings(target);
          return keys.inspect(target, signal);
        },
      };
    },
  };
}

async function load(env: Readonly<Record<string, string | undefined>>, notify: (line: string) => void) {
  const [{ sshShared, sshTransport }, { knownHostsStore }, { asRoot }, { formatProblem, usageError }] = await Promise.all([
    import('./ssh/adapters/transport-ssh.ts'),
    import('./ssh/adapters/known-hosts.ts'),
    import('./host/as-root.ts'),
    import('./base/errors.ts'),
  ]);
  const known = knownHostsStore();
  const shared = sshShared();
  const notice: HostKeyPolicy['notice'] = (problem) => notify(`${formatProblem(problem)}\n`);
  const shown = new Set<string>();
  /** Warnings of a host and its jump hosts; a warning shared by many hosts is shown once per run. */
  const showWarnings = ({ warnings, proxyJump }: SshTarget): void => {
    for (const problem of [...proxyJump.flatMap((hop) => hop.warnings), ...warnings]) {
      const line = `warning: ${formatProblem(problem)}\n`;
      if (shown.has(line)) continue;
      shown.add(line);
      notify(line);
    }
  };
  let openssh: Promise<(target: SshTarget, ssh: SshOptions) => Transport> | null = null;
  return {
    known,
    asRoot,
    showWarnings,
    connect: async (client: 'builtin' | 'openssh', target: SshTarget, ssh: SshOptions): Promise<Transport> => {
      if (client === 'builtin') return sshTransport(target, { hostKeys: known, shared, notice, ...credentials(ssh) });
      if (ssh.password !== undefined)
        throw usageError("the system's ssh client cannot use a given password", 'Use a key or an SSH agent, or --ssh-transport builtin');
      openssh ??= loadOpenssh(env.XDG_RUNTIME_DIR);
      return (await openssh)(target, ssh);
    },
  };
}

async function loadOpenssh(runtimeDirectory: string | undefined): Promise<(target: SshTarget, ssh: SshOptions) => Transport> {
  const { opensshShared, opensshTransport } = await import('./ssh/adapters/transport-openssh.ts');
  const shared = opensshShared(runtimeDirectory);
  return (target, { configFile }) => opensshTransport(target, { shared, configFile });
}

async function resolveTarget(route: string | FleetHostTarget, config: SshConfig, overrides: SshOverrides): Promise<SshTarget> {
  if (typeof route === 'string') return (await import('./ssh/resolve-target.ts')).resolveSshTarget(route, config, overrides);
  const { fleetSshTarget } = await import('./fleet/ssh-target.ts');
  return fleetSshTarget(route, config, { directory: route.directory, overrides });
}

/** Settings on the command line that apply to all hosts. */
function sshOverrides(ssh: SshOptions): SshOverrides {
  return {
    identityFiles: ssh.identityFiles ?? [],
    userKnownHostsFiles: ssh.knownHostsFile === undefined ? undefined : [resolve(ssh.knownHostsFile)],
    strictHostKeyChecking: ssh.acceptNewHostKeys === true ? 'accept-new' : undefined,
    connectTimeoutMs: ssh.connectTimeoutMs,
  };
}

function credentials({ password, passphrase }: SshOptions) {
  return { password, askPassphrase: passphrase && (async () => passphrase) };
}
