import { cleanPath } from '../../base/text/clean-path.ts';
import { localAddresses } from '../../host/facts/addresses.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { CommandFact } from '../../host/facts/query.ts';
import { KUBELET_CLIENT_PEM, KUBELET_CONF } from '../../kube/well-known.ts';

/** What a host presents to show which Node its kubelet is. All of it is data until `proveNode` has verified it. */
export interface NodeEvidence {
  /** File with the client certificate; null: no kubelet kubeconfig exists. */
  readonly source: string | null;
  /** PEM of the client certificate; null: `source` holds none. */
  readonly certificate: string | null;
  /** Signature of the challenge with the key of that certificate; null: none was made. */
  readonly signature: Buffer | null;
  /** Openssl, which would make the signature, is not installed. */
  readonly lacksOpenssl?: boolean;
  /** Last line of the host's error output; null: none. */
  readonly errorOutput: string | null;
  /** As the kubelet reads it; empty: the file is empty or does not exist. */
  readonly machineId: string;
  /** IP addresses of the host; null: unknown. */
  readonly addresses: readonly string[] | null;
}

/** More than any certificate and signature take. */
const MAX_OUTPUT = 64 * 1024;
const MAX_LINE = 500;
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** Exit code of the program on a host without openssl. */
const NO_OPENSSL = 3;

/**
 * Prints the client certificate of a kubelet and a signature of standard input with its key. The key stays on
 * the host: no argument, environment variable or output contains it. Arguments: the kubeconfig, the usual
 * certificate file. KUBELETADM_ROOT is set where a directory stands for the host (the lab).
 */
const PROGRAM = `r=\${KUBELETADM_ROOT-}; r=\${r%/}; d=\${1%/*}; c=$r$1
[ -f "$c" ] || exit 0
n=$(cat)
field() { sed -n "s/^[ -]*$1:[ ]*[\\"']\\{0,1\\}\\([^\\"' ]*\\).*/\\1/p" "$c" | head -n 1; }
path() { case $1 in "") echo "$2";; /*) echo "$1";; *) echo "$d/$1";; esac; }
first() { sed -n '/${BEGIN}/,/${END}/p;/${END}/q'; }
sign() {
  command -v openssl >/dev/null 2>&1 || return ${NO_OPENSSL}
  s=$(printf %s "$n" | openssl dgst -sha256 -sign "$1" | base64 | tr -d '\\n') && echo "signature $s"
}
if [ -n "$(field client-certificate-data)" ]; then
  echo "source $1"
  field client-certificate-data | base64 -d | first; echo
  field client-key-data | base64 -d | { exec 3<&0; sign /dev/fd/3; }
else
  f=$(path "$(field client-certificate)" "$2"); k=$(path "$(field client-key)" "$f")
  echo "source $f"
  [ -f "$r$f" ] || exit 0
  first <"$r$f"; echo
  sign "$r$k"
fi`;

/** The part of the evidence that needs no credential. */
export const machineEvidence: Fact<Pick<NodeEvidence, 'machineId' | 'addresses'>> = defineFact(
  {
    ...localAddresses.queries,
    // The kubelet (cadvisor) uses the first readable file, even an empty one.
    machineId: { kind: 'file', path: '/etc/machine-id' },
    dbusMachineId: { kind: 'file', path: '/var/lib/dbus/machine-id' },
  },
  ({ machineId, dbusMachineId, ...local }, parseText) => ({
    machineId: (machineId ?? dbusMachineId)?.content?.trim() ?? '',
    addresses: localAddresses.parse(local, parseText),
  }),
);

/**
 * Reads the evidence of a host with one command and a few files, in an existing round trip.
 * @param challenge what the host has to sign: `challengeOf` a nonce that was never used
 * @param kubeconfig of the kubelet
 */
export function nodeEvidence(challenge: string, kubeconfig: string = KUBELET_CONF): Fact<NodeEvidence> {
  return defineFact(
    {
      ...machineEvidence.queries,
      proof: { kind: 'command', argv: ['sh', '-c', PROGRAM, 'sh', cleanPath(kubeconfig), KUBELET_CLIENT_PEM], stdin: `${challenge}\n` },
    },
    ({ proof, ...machine }, parseText) => ({ ...readProof(proof), ...machineEvidence.parse(machine, parseText) }),
  );
}

function readProof({ exitCode, stdout, stderr }: CommandFact): Omit<NodeEvidence, 'machineId' | 'addresses'> {
  const text = stdout.slice(0, MAX_OUTPUT);
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  const lines = text.split('\n');
  const wordOf = (name: string): string => lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1) ?? '';
  const signature = wordOf('signature');
  return {
    source: wordOf('source') || null,
    certificate: begin >= 0 && end > begin ? `${text.slice(begin, end)}${END}\n` : null,
    signature: signature === '' ? null : Buffer.from(signature, 'base64'),
    lacksOpenssl: exitCode === NO_OPENSSL,
    errorOutput: stderr.slice(0, MAX_OUTPUT).trim().split('\n').at(-1)?.slice(0, MAX_LINE) || null,
  };
}
