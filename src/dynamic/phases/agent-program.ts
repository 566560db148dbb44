import { AppError, type Problem } from '../../base/errors.ts';
import { crashReason } from '../../base/text/crash-reason.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { LargeFile } from '../../host/operation/large-file.ts';
import { definePhase } from '../../host/phase.ts';
import { diffDirectory, diffFile, previousFile } from '../../host/plan/diff-file.ts';
import { revertChanges } from '../../host/plan/revert.ts';
import { AGENT_DIRECTORY, isProgramName } from '../../kubelet/node-agent/agent-program.ts';
import { signersFile } from '../../kubelet/node-agent/layout.ts';
import { KNOWN_SIGNATURE, signatureVerdict } from '../signing/signers.ts';

export interface AgentProgramInput {
  readonly file: LargeFile;
  readonly path: string;
  /** Command without arguments. */
  readonly command: readonly string[];
}

interface Facts {
  /** In hexadecimal digits; null: the file does not exist. */
  readonly sha256: string | null;
}

const LONG_MS = 60_000;

/**
 * Creates a phase that installs a program on the host and verifies that it runs. Programs of earlier versions are kept
 * until this one is used.
 */
export const programPhase = (name: string, short: string) =>
  definePhase<AgentProgramInput | null, Facts>({
    name,
    short,
    observe: async ({ host, signal }, input) => ({ sha256: input === null ? null : await observe(host, hashOf(input.path), signal) }),
    plan: ({ sha256 }, input) => {
      if (input === null) return { changes: [] };
      const { file, path } = input;
      if (sha256 === file.sha256) return { changes: [], noop: `${path} is up to date` };
      const reason = sha256 === null ? 'does not exist' : 'differs';
      return { changes: [{ kind: 'put-file', path, mode: 0o755, owner: 'root:root', content: file, reason }] };
    },
    undo: (_, applied) => revertChanges(applied),
    verify: async ({ host, signal }, input) => {
      if (input === null) return;
      const argv = [...input.command, '--version'];
      const { reported } = await host.query({ reported: { kind: 'command', argv } }, { timeoutMs: LONG_MS, signal });
      if (reported.exitCode === 0 && /^\d+\.\d+\.\d+/.test(reported.stdout.trim())) return;
      const why = crashReason(reported.stderr || reported.stdout) || `exit code ${reported.exitCode}`;
      const hint =
        'Provide a program that runs on the host with --program: kubeletadm-agent.mjs (needs Node.js 20.19 or later), or an executable for the CPU architecture of the host';
      throw new AppError({ host: host.name, code: 'AGENT_PROGRAM_DOES_NOT_RUN', message: `${name}: ${argv.join(' ')}: ${why}`, hint });
    },
  });

export const agentProgram = programPhase('agent-program', 'Install the agent program');

/** Creates a phase that removes the programs of a directory except the one that is used. */
export const oldProgramsPhase = (name: string, short: string) =>
  definePhase<{ readonly directory: string; readonly keep: string | null } | null, readonly string[]>({
    name,
    short,
    observe: async ({ host, signal }, input) => {
      if (input === null) return [];
      const { directory, keep } = input;
      const names = await observe(
        host,
        defineFact({ names: { kind: 'list', path: directory } }, ({ names }) => names ?? []),
        signal,
      );
      return names
        .filter(isProgramName)
        .map((name) => `${directory}/${name}`)
        .filter((path) => path !== keep);
    },
    plan: (old) => ({
      changes: old.map((path) => ({ kind: 'remove-file', path, before: null, reason: 'another version is used' })),
    }),
  });

export const agentOldPrograms = oldProgramsPhase('agent-old-programs', 'Remove unused agent programs');

function hashOf(path: string) {
  return defineFact({ sum: { kind: 'command', argv: ['sha256sum', path] } }, ({ sum }) =>
    sum.exitCode === 0 ? (/^\\?([0-9a-f]{64})\b/.exec(sum.stdout)?.[1] ?? null) : null,
  );
}

/**
 * Creates the directory of the agent's state and checkpoints, for root only. The sandbox of the agent's unit
 * forbids writes elsewhere.
 */
export const agentDirectory = definePhase<string | null, FileFact | null>({
  name: 'agent-directory',
  short: 'Create the state and checkpoint directory of the agent',
  observe: async ({ host, signal }, path) => (path === null ? null : ((await observe(host, fileFacts([path]), signal)).get(path) ?? null)),
  plan: (found, path) => {
    if (path === null) return { changes: [] };
    const change = diffDirectory(found, path, 0o700);
    return change === null ? { changes: [], noop: `${path} exists` } : { changes: [change] };
  },
});

const PATH = signersFile(AGENT_DIRECTORY);

/**
 * Writes the signers whose ConfigMaps the agent accepts (null: signatures are not required), for root only. The agent reads the
 * file at each check.
 */
export const agentSigners = definePhase<{ readonly text: string | null } | null, FileFact | null>({
  name: 'agent-signers',
  short: 'Write the signers whose configurations the agent accepts',
  observe: async ({ host, signal }, input) =>
    input === null ? null : ((await observe(host, fileFacts([PATH]), signal)).get(PATH) ?? null),
  plan: (found, input) => {
    if (input === null) return { changes: [] };
    if (input.text !== null) {
      const change = diffFile(found, { path: PATH, content: input.text, mode: 0o600, owner: 'root:root' });
      return change === null ? { changes: [], noop: `${PATH} is up to date` } : { changes: [change] };
    }
    if (found === null) return { changes: [] };
    return { changes: [{ kind: 'remove-file', path: PATH, before: previousFile(found), reason: 'signatures are not required' }] };
  },
  undo: (_, applied) => revertChanges(applied),
});

/** Whether the host can verify signatures: the reason as a problem; null: yes. */
export async function signatureProblem(host: Host, signal?: AbortSignal): Promise<Problem | null> {
  const found = await observe(host, signatureVerdict(KNOWN_SIGNATURE), signal);
  if (found.verdict === 'valid') return null;
  const isMissing = found.verdict === 'not-verified';
  return {
    host: host.name,
    code: 'SIGNATURES_NOT_SUPPORTED',
    message: `the agent cannot verify signatures on this host: ${isMissing ? found.cause : `ssh-keygen does not verify a valid signature${found.cause === '' ? '' : ` (${found.cause})`}`}`,
    hint: 'Install ssh-keygen of OpenSSH 8.2 or later on the host (package openssh-client on Debian, openssh on Red Hat and SUSE), or omit --require-signature',
  };
}
