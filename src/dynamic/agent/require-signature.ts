import { z } from 'zod';
import { isJsonObject, parseJsonObject } from '../../base/json.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { configMapData } from '../../kube/object.ts';
import { acceptedFile } from '../../kubelet/node-agent/layout.ts';
import { type Signer, signerName } from '../../ssh/signer.ts';
import { type ConfigSigners, parseSigners, type SignerLimits, signatureVerdict } from '../signing/signers.ts';
import { parseStatement, SIGNATURE_KEY, STATEMENT_KEY, sha256Of, statementMismatch } from '../signing/statement.ts';
import type { AgentOptions } from './agent-options.ts';
import { type AssignedObject, identityOf, type PreparedAssignment, prepareAssigned } from './prepare-assigned.ts';
import { refusedPayload } from './prepare-payload.ts';
import type { AgentState } from './state.ts';

/**
 * Prepares the payload of an assignment as `prepareAssigned`, if the agent accepts its signature. An older revision is
 * accepted only if the kubelet runs its payload already, for example after a rollback from a newer one. The revision
 * is stored before the kubelet is changed.
 * @throws the errors of `prepareAssigned`, and of writing the accepted revision
 */
export async function prepareVerified(
  assigned: AssignedObject,
  { active, lastKnownGood }: Pick<AgentState, 'active' | 'lastKnownGood'>,
  options: AgentOptions,
): Promise<PreparedAssignment> {
  const proven = [active, lastKnownGood].flatMap((payload) => (payload === null ? [] : [payload.hash]));
  if (options.signersFile === null) return prepareAssigned(assigned, { proven }, options);
  const checked = await checkSignature(assigned, options.signersFile, options);
  if ('refusal' in checked) return notSigned(assigned, checked.refusal);
  const { signer, limits, replay } = checked;
  const name = signer.pattern === undefined ? `the signer ${signer.principal}` : signerName(signer);
  const prepared = await prepareAssigned(assigned, { proven, signer: limits === null ? undefined : { ...limits, name } }, options);
  if (prepared.files === null) return prepared;
  if (replay === null) await checked.accept();
  else if (prepared.candidate.hash !== active?.hash) return notSigned(assigned, replay);
  return prepared;
}

function notSigned({ source, object }: AssignedObject, cause: string): PreparedAssignment {
  return { ...refusedPayload(identityOf(source, object), { code: 'NOT_SIGNED', cause }), podWarnings: [] };
}

type SignatureCheck =
  | { readonly refusal: string }
  | {
      readonly signer: Signer;
      /** Null: not limited. */
      readonly limits: SignerLimits | null;
      /** An older revision than the last accepted one, as a clause; null: the revision may be accepted. */
      readonly replay: string | null;
      /** Stores the revision as accepted, before the kubelet is changed. */
      accept(): Promise<void>;
    };

/**
 * Verifies the signature of an assigned ConfigMap with `ssh-keygen` of the host. Everything that cannot be verified is
 * refused. A statement that this node accepted before is not verified again until the file of signers changes: a key
 * that expires later does not reject the running configuration.
 * @throws the errors of reading and writing files of the host
 */
async function checkSignature({ source, object }: AssignedObject, signersFile: string, options: AgentOptions): Promise<SignatureCheck> {
  const { host, nodeName, directory, signal } = options;
  const refuse = (refusal: string): SignatureCheck => ({ refusal });
  const found = await observe(host, fileFacts([signersFile, acceptedFile(directory)]), signal);
  const list = found.get(signersFile)?.content;
  const signers = list === undefined ? null : parseSigners(list);
  if (list === undefined || signers === null)
    return refuse(
      `no signature can be verified, because ${signersFile} ${list === undefined ? 'does not exist' : 'is damaged'}. Rerun dynamic enable --require-signature`,
    );
  const accepted = readAccepted(found.get(acceptedFile(directory))?.content, directory);
  if (typeof accepted === 'string') return refuse(accepted);
  const data = configMapData(object);
  const { [STATEMENT_KEY]: text, [SIGNATURE_KEY]: signature } = data;
  if (text === undefined || signature === undefined)
    return refuse('the ConfigMap is not signed, but this node accepts only signed ConfigMaps. Sign it with dynamic push --sign KEY');
  const statement = parseStatement(text);
  if (statement === null) return refuse(`the key ${STATEMENT_KEY} of the ConfigMap is not a statement that this agent can read`);
  if (isJsonObject(object.binaryData) && Object.keys(object.binaryData).length > 0)
    return refuse('the ConfigMap has binaryData, which is not signed');
  const mismatch = statementMismatch(statement, { source, data, nodeName });
  if (mismatch !== null) return refuse(mismatch);
  const [digest, trust] = [sha256Of(text), sha256Of(list)];
  const isKnown = accepted?.statement === digest && accepted.signers === trust;
  const signer = isKnown ? accepted.signer : await signerOf({ text, signature, signers }, options);
  if (typeof signer === 'string') return refuse(signer);
  const limits = limitsOf(signers, signer);
  if (typeof limits === 'string') return refuse(limits);
  return {
    signer,
    limits,
    replay: replayOf(statement.revision, digest, accepted),
    accept: async () => {
      if (isKnown) return;
      const revision: AcceptedRevision = { revision: statement.revision, statement: digest, signers: trust, signer };
      const content = `${JSON.stringify(revision)}\n`;
      await host.perform([{ kind: 'write-file', path: acceptedFile(directory), mode: 0o600, owner: 'root:root', content }]);
    },
  };
}

/** The last accepted revision; null: none yet; text: why it cannot be read. */
function readAccepted(text: string | undefined, directory: string): AcceptedRevision | string | null {
  if (text === undefined) return null;
  return (
    ACCEPTED.safeParse(parseJsonObject(text)).data ??
    `the last accepted revision is unknown, because ${acceptedFile(directory)} is damaged. After checking the assignment, remove this file on the node`
  );
}

/** The signer, or the reason for a refusal. */
async function signerOf(
  signed: { readonly text: string; readonly signature: string; readonly signers: ConfigSigners },
  { host, signal }: AgentOptions,
): Promise<Signer | string> {
  const found = await observe(host, signatureVerdict(signed), signal);
  if (found.verdict === 'valid') return found.signer;
  const cause = found.cause === '' ? '' : `: ${found.cause}`;
  if (found.verdict === 'unknown-signer') return `the ConfigMap is not signed by a signer that this node accepts${cause}`;
  if (found.verdict === 'invalid') return `the signature of the ConfigMap is not valid, or its key is revoked on this node${cause}`;
  return `the signature of the ConfigMap cannot be verified on this node${cause}`;
}

function limitsOf({ limits }: ConfigSigners, signer: Signer): SignerLimits | string | null {
  if (limits === null) return null;
  const entry = signer.principal ?? signer.pattern ?? '';
  if (Object.hasOwn(limits, entry)) return limits[entry] ?? null;
  return `the signer policy of this node has no entry for ${entry} (${signer.fingerprint})`;
}

function replayOf(revision: number, digest: string, accepted: AcceptedRevision | null): string | null {
  if (accepted === null || revision > accepted.revision || digest === accepted.statement) return null;
  const what = revision === accepted.revision ? 'is that of another ConfigMap' : 'is older than';
  return `the signed revision ${revision} ${what} ${revision === accepted.revision ? 'that this node accepted' : `the accepted revision ${accepted.revision}`}. To return to an earlier content, sign it again with dynamic push --sign KEY`;
}

const ACCEPTED = z.strictObject({
  revision: z.int().positive(),
  /** SHA-256 of the signed statement. */
  statement: z.string(),
  /** SHA-256 of the file of signers with which the signature was verified. */
  signers: z.string(),
  signer: z.strictObject({ fingerprint: z.string(), principal: z.string().optional(), pattern: z.string().optional() }),
});

/** The signed configuration that a node accepted last. Its file survives restarts of the agent and `dynamic enable`. */
type AcceptedRevision = z.infer<typeof ACCEPTED>;
