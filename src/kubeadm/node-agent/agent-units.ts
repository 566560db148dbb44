import { pointerFile } from './layout.ts';

/** The agent's unit, by name. */
export const AGENT_SERVICE = 'kubeletadm-agent';
/** The unit of the agent. */
export const AGENT_UNIT = `/etc/systemd/system/${AGENT_SERVICE}.service`;
/** What `systemctl enable` makes of it. */
export const DESIRED_AGENT = `/etc/systemd/system/multi-user.target.wants/${AGENT_SERVICE}.service`;
/** The kubeconfig that earlier versions wrote for the agent. */
export const FORMER_KUBECONFIG = '/etc/kubernetes/kubeletadm-agent.conf';
/** Has the kubelet's unit read the agent's pointer. After kubeadm's own drop-in, by its name. */
export const POINTER_DROP_IN = '/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf';

/** The directory of the drop-ins that `dynamic enable` writes. */
export const DROP_IN_DIRECTORY = POINTER_DROP_IN.slice(0, POINTER_DROP_IN.lastIndexOf('/'));
/** In the agent's unit where that directory existed before: `dynamic disable` then keeps it, though it is empty. */
export const KEEPS_DROP_IN_DIRECTORY = `# ${DROP_IN_DIRECTORY} existed before.`;

/**
 * The drop-in that lets the pointer win over `KUBELET_CONFIG_ARGS` of kubeadm's drop-in. A pointer that is not there counts for nothing: then the kubelet
 * starts with the local configuration, whether there is an agent or not.
 */
export function renderPointerDropIn(directory: string): string {
  return `# Written by kubeletadm: makes the kubelet read the configuration selected by the agent.
[Service]
EnvironmentFile=-${pointerFile(directory)}
`;
}

/**
 * What the agent's process can't do, and what it starts: `systemctl`, `journalctl`, `crictl`, the kubelet's check of a configuration. Node.js compiles at runtime,
 * so MemoryDenyWriteExecute is not among them. Files are given to root, whose they are already: that takes @chown and no capability. A systemd that does not know a setting warns and goes on without it.
 * @see systemd.exec(5)
 */
function sandbox(writable: string, isAtHome: boolean): string {
  return `NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ReadWritePaths=${quoteWord(writable)}
ProtectHome=${isAtHome ? 'read-only' : 'yes'}
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes
KeyringMode=private
UMask=0077
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@resources @privileged
SystemCallFilter=@chown
SystemCallErrorNumber=EPERM
`;
}

/** Directories that ProtectHome hides. */
const HOMES = /^(?:\/home|\/root|\/run\/user)\//;

/**
 * The unit of the agent. It neither needs the kubelet nor is needed by it, and comes back whatever it ends of. It waits for no network: a kubelet that does not stay
 * up with its configuration has to be got back without one, and a network may be away for what that configuration does.
 * @param command the program and its arguments, words of systemd
 * @param directory the only place where it writes
 * @param keepsDropInDirectory whether the directory of the drop-ins existed before
 */
export function renderAgentUnit(command: readonly string[], directory: string, keepsDropInDirectory = false): string {
  return `${keepsDropInDirectory ? `${KEEPS_DROP_IN_DIRECTORY}\n` : ''}[Unit]
Description=kubeletadm agent: the kubelet's configuration from the cluster
StartLimitIntervalSec=0

[Service]
ExecStart=${command.map(quoteWord).join(' ')}
Restart=always
RestartSec=2
MemoryMax=200M
OOMScoreAdjust=-500
${sandbox(
  directory,
  command.some((word) => HOMES.test(word)),
)}
[Install]
WantedBy=multi-user.target
`;
}

/** As systemd reads words: quotes where there are blanks, `%` and `$` doubled. */
function quoteWord(word: string): string {
  const plain = word.replace(/%/g, '%%').replace(/\$/g, '$$$$');
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
}
