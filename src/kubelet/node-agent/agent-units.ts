import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import { execStartWords } from '../../host/systemd/exec-start.ts';
import { MANIFESTS_DIR } from '../../kube/well-known.ts';
import { isProgramName } from './agent-program.ts';
import { pointerFile } from './layout.ts';

export const AGENT_SERVICE = 'kubeletadm-agent';
export const AGENT_UNIT = `/etc/systemd/system/${AGENT_SERVICE}.service`;
/** Link created by `systemctl enable`. */
export const AGENT_WANTS_LINK = `/etc/systemd/system/multi-user.target.wants/${AGENT_SERVICE}.service`;
/** The kubeconfig that earlier versions wrote for the agent. */
export const FORMER_KUBECONFIG = '/etc/kubernetes/kubeletadm-agent.conf';
/** Makes the kubelet unit read the agent's pointer. Sorts after kubeadm's own drop-in. */
export const POINTER_DROP_IN = '/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf';

/** The directory of the drop-ins that `dynamic enable` writes. */
export const DROP_IN_DIRECTORY = POINTER_DROP_IN.slice(0, POINTER_DROP_IN.lastIndexOf('/'));
/** Line in the agent unit if the directory existed before: `dynamic disable` then keeps the directory even if empty. */
const KEEP_DROP_IN_DIRECTORY_MARKER = `# ${DROP_IN_DIRECTORY} existed before.`;

/**
 * The drop-in that makes the pointer override `KUBELET_CONFIG_ARGS` of kubeadm's drop-in. Without a pointer
 * file the kubelet starts with the local configuration, with or without an agent.
 * @param command the command line of the unit as it is written there, when it does not read that variable
 */
export function renderPointerDropIn(templates: Templates, directory: string, command: string | null = null): string {
  return String(renderTemplate(templates, POINTER_DROP_IN, { pointerFile: pointerFile(directory), command }));
}

/** Whether a word of a command is a path that ProtectHome hides. */
export function isAtHome(word: string): boolean {
  return /^(?:\/home|\/root|\/run\/user)\//.test(word);
}

/**
 * The unit of the agent. Agent and kubelet do not depend on each other, and the agent is always restarted.
 * The agent does not wait for the network: it must be able to roll back a configuration that keeps the
 * kubelet down or breaks the network.
 * @param input `command`: the program and its arguments as systemd words; `directory`: writable, as the directory of static
 *   pods; `kubeletDirectory`: root directory of the kubelet, writable for an agent that replaces state files in it, or null;
 *   `keepsDropInDirectory`: the directory of the drop-ins existed before
 */
export function renderAgentUnit(
  templates: Templates,
  {
    keepsDropInDirectory,
    ...input
  }: {
    readonly command: readonly string[];
    readonly directory: string;
    readonly kubeletDirectory: string | null;
    readonly keepsDropInDirectory: boolean;
  },
): string {
  const context = {
    ...input,
    staticPods: MANIFESTS_DIR,
    comment: keepsDropInDirectory ? KEEP_DROP_IN_DIRECTORY_MARKER : null,
    isAtHome: input.command.some(isAtHome),
  };
  return String(renderTemplate(templates, AGENT_UNIT, context));
}

/** How an agent was installed. Null: not found in its unit. */
export interface InstalledAgent {
  /** Directory of its program. */
  readonly programDirectory: string | null;
  /** Namespace of the ConfigMaps it reads. */
  readonly namespace: string | null;
  readonly nodeName: string | null;
  /** The file of signers whose ConfigMaps it accepts. */
  readonly signersFile: string | null;
  /** The directory of the kubelet's drop-ins existed before. */
  readonly keepsDropInDirectory: boolean;
}

/** Reads from the unit text how an agent was installed. @param unitText null: no unit exists */
export function readInstalledAgent(unitText: string | null): InstalledAgent {
  const words = execStartWords([{ path: AGENT_UNIT, text: unitText }], [])?.map(({ word }) => word) ?? [];
  const wordAfter = (flag: string): string | null => (words.includes(flag) ? (words[words.lastIndexOf(flag) + 1] ?? null) : null);
  const program = words.find((word) => isProgramName(word.slice(word.lastIndexOf('/') + 1)));
  return {
    programDirectory: program?.startsWith('/') === true ? program.slice(0, program.lastIndexOf('/')) : null,
    namespace: wordAfter('--namespace'),
    nodeName: wordAfter('--node-name'),
    signersFile: wordAfter('--require-signature'),
    // Without a unit, assume that the directory existed before.
    keepsDropInDirectory: unitText === null || unitText.split('\n').includes(KEEP_DROP_IN_DIRECTORY_MARKER),
  };
}
