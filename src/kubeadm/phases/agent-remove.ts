import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { mustBeStopped, type UnitState, unitState } from '../../host/facts/unit.ts';
import { definePhase } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { isProgramName } from '../../kubelet/node-agent/agent-program.ts';
import {
  AGENT_SERVICE,
  AGENT_UNIT,
  AGENT_WANTS_LINK,
  DROP_IN_DIRECTORY,
  FORMER_KUBECONFIG,
  POINTER_DROP_IN,
} from '../../kubelet/node-agent/agent-units.ts';
import { acceptedFile, checkpointsDirectory } from '../../kubelet/node-agent/layout.ts';
import { NATIVE_DROP_IN } from '../../kubelet/node-agent/native-flags.ts';

interface AgentPaths {
  /** Directory of its state and checkpoints. */
  readonly directory: string;
  readonly programDirectory: string;
}

export interface AgentRemoveInput extends AgentPaths {
  /** The directory of the kubelet's drop-ins existed before the agent. */
  readonly keepsDropInDirectory: boolean;
}

interface Facts {
  readonly state: readonly string[] | null;
  readonly programs: readonly string[] | null;
  /** Its unit, and the kubeconfig of earlier versions. */
  readonly files: readonly string[];
  /** Names in the drop-in directory of the kubelet unit. */
  readonly dropIns: readonly string[] | null;
}

const NOTHING = 'the agent is not installed';
const REASON = 'the agent is removed';

/**
 * Removes the agent's files from a host, except the accepted revision of signed configurations; its unit, which names the paths, is removed last. The kubelet must
 * already run with its own configuration.
 */
export const agentRemove = definePhase<AgentRemoveInput | null, Facts | null>({
  name: 'agent-remove',
  short: 'Remove the program, state, checkpoints and unit of the agent',
  observe: async ({ host, signal }, input) => {
    if (input === null) return null;
    const found = await observe(host, leftOfAgent(input), signal);
    if (found.state?.includes(ACCEPTED) !== true) return found;
    return { ...found, state: await observeOwnNames(host, { names: found.state, directory: input.directory }, signal) };
  },
  plan: (found, input) => {
    if (found === null || input === null) return { changes: [] };
    const changes = removals(found, input, { keepsAccepted: true });
    return changes.length === 0 ? { changes, noop: NOTHING } : { changes };
  },
});

interface ResetFacts extends Facts {
  readonly unit: UnitState | null;
  /**
   * Links and drop-ins that start the agent at boot or make the kubelet use a configuration of the agent or
   * the cluster.
   */
  readonly links: readonly string[];
}

const LINKS = [AGENT_WANTS_LINK, POINTER_DROP_IN, NATIVE_DROP_IN];

/**
 * The same for a host that is reset. The agent is stopped before the kubelet, because it would restart the
 * kubelet.
 */
export const resetAgent = definePhase<AgentRemoveInput, ResetFacts>({
  name: 'remove-agent',
  short: 'Stop and remove the kubeletadm agent',
  observe: async ({ host, signal }, input) => {
    const { left, unit, files } = await observe(host, resetAgentFacts(input), signal);
    return { ...left, unit, links: LINKS.filter((path) => files.get(path) != null) };
  },
  plan: (found, input) => {
    const { unit, links } = found;
    const left = removals(found, input, { keepsAccepted: false });
    const changes: readonly HostChange[] = [
      ...(mustBeStopped(unit) ? [{ kind: 'stop-unit', unit: AGENT_SERVICE, reason: 'its files are removed' } as const] : []),
      ...links.map((path) => ({ kind: 'remove-file', path, before: null, reason: REASON }) as const),
      ...left,
      ...(links.length > 0 && !found.files.includes(AGENT_UNIT) ? [RELOAD] : []),
    ];
    return changes.length === 0 ? { changes, noop: NOTHING } : { changes };
  },
});

/** The facts that `resetAgent` observes. */
export function resetAgentFacts(input: AgentPaths) {
  return combineFacts({ left: leftOfAgent(input), unit: unitState(AGENT_SERVICE), files: fileFacts(LINKS) });
}

const RELOAD = { kind: 'daemon-reload', reason: 'the unit files change' } as const;

function leftOfAgent({ directory, programDirectory }: AgentPaths): Fact<Facts> {
  const { queries, parse } = combineFacts({
    state: listOf(directory),
    programs: listOf(programDirectory),
    dropIns: listOf(DROP_IN_DIRECTORY),
    files: fileFacts([FORMER_KUBECONFIG, AGENT_UNIT]),
  });
  return {
    queries,
    parse: (answers, parseText) => {
      const { files, ...lists } = parse(answers, parseText);
      return { ...lists, files: [FORMER_KUBECONFIG, AGENT_UNIT].filter((path) => files.get(path) != null) };
    },
  };
}

function removals(
  { state, programs, files, dropIns }: Facts,
  { directory, programDirectory, keepsDropInDirectory }: AgentRemoveInput,
  { keepsAccepted }: { readonly keepsAccepted: boolean },
): readonly HostChange[] {
  const reason = REASON;
  const own = (programs ?? []).filter(isProgramName);
  const ownDropIns = [POINTER_DROP_IN, NATIVE_DROP_IN].map((path) => path.slice(DROP_IN_DIRECTORY.length + 1));
  return [
    ...directoryRemovals(state, directory, { keepsAccepted }),
    // Files of others in this directory are kept.
    ...(programs !== null && own.length === programs.length
      ? [{ kind: 'remove-directory', path: programDirectory, reason } as const]
      : own.map((name) => ({ kind: 'remove-file', path: `${programDirectory}/${name}`, before: null, reason }) as const)),
    ...(!keepsDropInDirectory && dropIns?.every((name) => ownDropIns.includes(name)) === true
      ? [{ kind: 'remove-empty-directory', path: DROP_IN_DIRECTORY, reason: 'the directory is empty' } as const]
      : []),
    ...files.map((path) => ({ kind: 'remove-file', path, before: null, reason }) as const),
    ...(files.includes(AGENT_UNIT) ? [RELOAD] : []),
  ];
}

/** Otherwise an agent that is enabled again would accept an earlier signed configuration. */
const ACCEPTED = acceptedFile('').slice(1);

/** The names without directories of others: `remove-file` would fail for them in each run. */
async function observeOwnNames(
  host: Host,
  { names, directory }: { readonly names: readonly string[]; readonly directory: string },
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const pathOf = (name: string): string => `${directory}/${name}`;
  const unknown = names.filter((name) => name !== ACCEPTED && pathOf(name) !== checkpointsDirectory(directory));
  if (unknown.length === 0) return names;
  const types = Object.fromEntries(unknown.map((name) => [name, { kind: 'file', path: pathOf(name), content: false } as const]));
  const found = await observe(
    host,
    defineFact(types, (answers) => answers),
    signal,
  );
  return names.filter((name) => found[name]?.type !== 'directory');
}

function directoryRemovals(
  names: readonly string[] | null,
  directory: string,
  { keepsAccepted }: { readonly keepsAccepted: boolean },
): readonly HostChange[] {
  if (names === null) return [];
  if (!keepsAccepted || !names.includes(ACCEPTED)) return [{ kind: 'remove-directory', path: directory, reason: REASON }];
  const paths = names.filter((name) => name !== ACCEPTED).map((name) => `${directory}/${name}`);
  return paths.map((path) =>
    path === checkpointsDirectory(directory)
      ? { kind: 'remove-directory', path, reason: REASON }
      : { kind: 'remove-file', path, before: null, reason: REASON },
  );
}

function listOf(path: string) {
  return defineFact({ names: { kind: 'list', path } }, ({ names }) => names);
}
