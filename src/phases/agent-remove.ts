import { isProgramName } from '../core/dynamic/agent/agent-program.ts';
import { AGENT_UNIT, FORMER_KUBECONFIG } from '../core/dynamic/agent/agent-units.ts';
import { combineFacts, defineFact } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import type { HostChange } from '../core/plan/change.ts';
import { observe } from '../engine/observe.ts';
import { definePhase } from '../engine/phase.ts';

export interface AgentRemoveInput {
  /** Its state and checkpoints. */
  readonly directory: string;
  readonly programDirectory: string;
}

interface Facts {
  readonly state: readonly string[] | null;
  readonly programs: readonly string[] | null;
  /** Its unit, and the kubeconfig that earlier versions wrote. */
  readonly files: readonly string[];
}

/** Takes off a host what the agent kept there, its program and, last, its unit, which says where they are. Nothing of it is needed once the kubelet runs its own configuration again. */
export const agentRemove = definePhase<AgentRemoveInput | null, Facts | null>({
  name: 'agent-remove',
  short: "Remove the agent's program, state, checkpoints and unit",
  observe: async ({ host, signal }, input) => {
    if (input === null) return null;
    const facts = combineFacts({
      state: listOf(input.directory),
      programs: listOf(input.programDirectory),
      files: fileFacts([FORMER_KUBECONFIG, AGENT_UNIT]),
    });
    const { state, programs, files } = await observe(host, facts, signal);
    return { state, programs, files: [FORMER_KUBECONFIG, AGENT_UNIT].filter((path) => files.get(path) != null) };
  },
  plan: (found, input) => {
    if (found === null || input === null) return { changes: [] };
    const because = 'the agent is gone';
    const programs = found.programs ?? [];
    const own = programs.filter(isProgramName);
    const changes: readonly HostChange[] = [
      ...(found.state === null ? [] : [{ kind: 'remove-directory', path: input.directory, because } as const]),
      // What others put beside it stays.
      ...(found.programs !== null && own.length === programs.length
        ? [{ kind: 'remove-directory', path: input.programDirectory, because } as const]
        : own.map((name) => ({ kind: 'remove-file', path: `${input.programDirectory}/${name}`, before: null, because }) as const)),
      ...found.files.map((path) => ({ kind: 'remove-file', path, before: null, because }) as const),
      ...(found.files.includes(AGENT_UNIT) ? [{ kind: 'daemon-reload', because: 'unit files changed' } as const] : []),
    ];
    return changes.length === 0 ? { changes, noop: 'nothing of the agent is on the host' } : { changes };
  },
});

function listOf(path: string) {
  return defineFact({ names: { kind: 'list', path } }, ({ names }) => names);
}
