import type { Problem } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase } from '../../host/phase.ts';
import { diffFile } from '../../host/plan/diff-file.ts';
import { revertChanges } from '../../host/plan/revert.ts';
import { AGENT_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { signersFile } from '../../kubelet/node-agent/layout.ts';
import { KNOWN_SIGNATURE, signatureVerdict } from '../signing/verify-signature.ts';

export interface AgentSignersInput {
  /** Null: signatures are not required. */
  readonly text: string | null;
}

const PATH = signersFile(AGENT_DIRECTORY);

/** Writes the signers whose ConfigMaps the agent accepts, for root only. The agent reads the file at each check. */
export const agentSigners = definePhase<AgentSignersInput | null, FileFact | null>({
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
    const before = { content: found.content ?? '', mode: found.mode, owner: found.owner };
    return { changes: [{ kind: 'remove-file', path: PATH, before, reason: 'signatures are not required' }] };
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
