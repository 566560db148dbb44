import { pointerFile } from './layout.ts';

export const AGENT_SERVICE = 'kubeletadm-agent';
export const AGENT_UNIT = `/etc/systemd/system/${AGENT_SERVICE}.service`;
/** Link created by `systemctl enable`. */
export const DESIRED_AGENT = `/etc/systemd/system/multi-user.target.wants/${AGENT_SERVICE}.service`;
/** The kubeconfig that earlier versions wrote for the agent. */
export const FORMER_KUBECONFIG = '/etc/kubernetes/kubeletadm-agent.conf';
/** Makes the kubelet unit read the agent's pointer. Sorts after kubeadm's own drop-in. */
export const POINTER_DROP_IN = '/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf';

/** The directory of the drop-ins that `dynamic enable` writes. */
export const DROP_IN_DIRECTORY = POINTER_DROP_IN.slice(0, POINTER_DROP_IN.lastIndexOf('/'));
/**
 * Line in the agent unit if the directory existed before: `dynamic disable` then keeps the directory even if
 * empty.
 */
export const KEEPS_DROP_IN_DIRECTORY = `# ${DROP_IN_DIRECTORY} existed before.`;

/**
 * The drop-in that makes the pointer override `KUBELET_CONFIG_ARGS` of kubeadm's drop-in. Without a pointer
 * file the kubelet starts with the local configuration, with or without an agent.
 */
export function renderPointerDropIn(directory: string): string {
  return `# Written by kubeletadm: which configuration the kubelet reads, where the agent says so.
[Service]
EnvironmentFile=-${pointerFile(directory)}
`;
}

/**
 * Sandbox settings of the agent process, which runs `systemctl`, `journalctl`, `crictl` and the kubelet's
 * configuration check. MemoryDenyWriteExecute is not set because Node.js compiles at runtime. Chowning files
 * to root, their owner already, needs @chown but no capability. systemd ignores settings it does not know,
 * with a warning.
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

/** Directories hidden by ProtectHome. */
const HOMES = /^(?:\/home|\/root|\/run\/user)\//;

/**
 * The unit of the agent. Agent and kubelet do not depend on each other, and the agent is always restarted.
 * The agent does not wait for the network: it must be able to roll back a configuration that keeps the
 * kubelet down or breaks the network.
 * @param command the program and its arguments as systemd words
 * @param directory the only writable directory
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

/** Quotes a word for systemd: quotes around spaces, `%` and `$` doubled. */
function quoteWord(word: string): string {
  const plain = word.replace(/%/g, '%%').replace(/\$/g, '$$$$');
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`;
}
