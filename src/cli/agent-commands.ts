import type { CommandEntry } from './command.ts';

export const AGENT_COMMAND: CommandEntry = {
  name: 'agent',
  description: 'Run the node agent: apply the assigned kubelet configuration, verify it, and roll back if the kubelet becomes unhealthy',
  load: async () => (await import('./agent-command.ts')).defineAgent,
};

export const VERSION_COMMAND: CommandEntry = {
  name: 'version',
  description: 'Print the version',
  load: async () => (await import('./version-command.ts')).defineVersion,
};

/** Without subcommands. */
export const CONTROLLER_COMMAND: CommandEntry = {
  name: 'controller',
  description: 'Run the controller that rolls out kubelet configurations declared as objects of the cluster (KubeletConfigRollout)',
  load: async () => (await import('./controller-run-command.ts')).defineControllerRun,
};

/** The commands of the program that runs on nodes and control planes. */
export const AGENT_COMMANDS: readonly CommandEntry[] = [AGENT_COMMAND, CONTROLLER_COMMAND, VERSION_COMMAND];
