import type { DefinedPhase } from '../../host/phase.ts';
import { CERTIFICATES, SERVICE_ACCOUNT } from '../pki/certificate-list.ts';
import { KUBECONFIGS } from '../pki/kubeconfig-list.ts';
import { type WriteFilesInput, writeFilesPhase } from './write-files.ts';

/** The certificate and kubeconfig files to write, as decided by `preparePki`. */
export interface PkiInput {
  /** By the name of the certificate, and `sa`. */
  readonly certificates: ReadonlyMap<string, WriteFilesInput>;
  readonly kubeconfigs: ReadonlyMap<string, WriteFilesInput>;
}

const EXISTING_CERTIFICATE = 'the certificate and its key are valid';
const EXISTING_KUBECONFIG = 'the kubeconfig is valid';

/** init's phases `certs/ca` to `certs/sa`, in kubeadm's order. */
export const certsPhases: readonly DefinedPhase<PkiInput>[] = [
  ...CERTIFICATES.map(({ name, longName }) =>
    partOf('certificates', name, [`certs/${name}`, `Generate the ${longName}`, EXISTING_CERTIFICATE]),
  ),
  partOf('certificates', SERVICE_ACCOUNT, [
    `certs/${SERVICE_ACCOUNT}`,
    'Generate the key pair that signs the tokens of service accounts',
    'the keys are valid',
  ]),
];

/** init's phases `kubeconfig/admin` to `kubeconfig/scheduler`, in kubeadm's order. */
export const kubeconfigPhases: readonly DefinedPhase<PkiInput>[] = KUBECONFIGS.map(({ name, longName }) =>
  partOf('kubeconfigs', name, [`kubeconfig/${name}`, `Generate the ${longName}`, EXISTING_KUBECONFIG]),
);

/** join's phases `control-plane-prepare/certs` and `control-plane-prepare/kubeconfig`. */
export const joinPkiPhases: readonly DefinedPhase<PkiInput>[] = [
  allOf('certificates', [
    'control-plane-prepare/certs',
    'Generate the certificates of the control plane',
    'the certificates and their keys are valid',
  ]),
  allOf('kubeconfigs', [
    'control-plane-prepare/kubeconfig',
    'Generate admin.conf, controller-manager.conf and scheduler.conf',
    'the kubeconfigs are valid',
  ]),
];

/** join's phase `control-plane-prepare/download-certs`. */
export const downloadCertsPhase: DefinedPhase<WriteFilesInput> = writeFilesPhase(
  'control-plane-prepare/download-certs',
  'Download the certificates shared by control planes',
  'the shared certificates exist',
);

type Texts = readonly [name: string, short: string, noop: string];

function partOf(part: keyof PkiInput, name: string, texts: Texts): DefinedPhase<PkiInput> {
  return phaseOver(texts, (input) => input[part].get(name) ?? NOTHING);
}

function allOf(part: keyof PkiInput, texts: Texts): DefinedPhase<PkiInput> {
  return phaseOver(texts, (input) => {
    const each = [...input[part].values()];
    return {
      files: each.flatMap(({ files }) => files),
      directories: each.flatMap(({ directories }) => directories),
      mayChown: each.every(({ mayChown }) => mayChown),
    };
  });
}

const NOTHING: WriteFilesInput = { files: [], directories: [], mayChown: true, skipped: 'not used by this cluster' };

function phaseOver(texts: Texts, select: (input: PkiInput) => WriteFilesInput): DefinedPhase<PkiInput> {
  return writeFilesPhase(...texts).select(select);
}
