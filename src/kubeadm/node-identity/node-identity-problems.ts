import type { Problem } from '../../base/errors.ts';

/** Why a host could not prove its Node. */
export interface NodeProofFailure {
  readonly cause: 'missing' | 'no-ca' | 'untrusted' | 'expired' | 'no-openssl' | 'no-key';
  /** A clause. */
  readonly why: string;
}

/**
 * The host did not prove its Node, and the operator did not name one.
 * @param nameHint how to name the Node; begins with a verb
 */
export function nodeNotProven(host: string, { cause, why }: NodeProofFailure, nameHint: string): Problem {
  const hint = {
    missing: capitalize(nameHint),
    'no-ca': `Pass a kubeconfig with certificate-authority-data, or ${nameHint}`,
    untrusted: `Check the host: the certificate belongs to another cluster or is forged. If this is the right host, ${nameHint}`,
    expired: `Renew the certificate with kubeletadm certs renew-kubelet, or ${nameHint}`,
    'no-openssl': `Install openssl on the host, or ${nameHint}`,
    'no-key': `Check the host: the certificate was copied from another host. If this is the right host, ${nameHint}`,
  }[cause];
  return { host, code: 'NODE_NOT_PROVEN', message: `cannot determine the Node of this host: ${why}`, hint };
}

/** The operator named a Node, but the host has a certificate for another Node. */
export function nodeNameConflict(host: string, { named, certified }: { readonly named: string; readonly certified: string }): Problem {
  const message = `the kubelet has a client certificate for Node ${certified}, but the configured Node name is ${named}`;
  return { host, code: 'NODE_NAME_CONFLICT', message, hint: 'Check that this is the right host, and correct the Node name' };
}

export function machineIdEmpty(host: string): Problem {
  const message = '/etc/machine-id is empty or does not exist: cannot compare the host with its Node';
  return { host, code: 'MACHINE_ID_EMPTY', message, hint: 'Run systemd-machine-id-setup on the host, then systemctl restart kubelet' };
}

export function machineIdMissing(host: string, nodeName: string): Problem {
  const message = `Node ${nodeName} reports no machine-id: cannot compare the host with the Node`;
  return {
    host,
    code: 'MACHINE_ID_EMPTY',
    message,
    hint: 'Restart the kubelet of the Node; the kubelet reports the machine-id at startup',
  };
}

/** The Node was registered by the kubelet of another host. */
export function nodeOfAnotherHost(
  host: string,
  { nodeName, theirs, own }: { readonly nodeName: string; readonly theirs: string; readonly own: string },
): Problem {
  const message = `Node ${nodeName} belongs to another host: its machine-id is ${theirs}, but the machine-id of this host is ${own}`;
  return {
    host,
    code: 'NodeOfAnotherHost',
    message,
    hint: 'Check the address of the host and the Node name. If the machine-id of the host changed, restart its kubelet',
  };
}

/** The Node that the operator named has other addresses: probably a wrong name, or a cloned host. */
export function nodeAddressMismatch(
  host: string,
  { nodeName, known, own }: { readonly nodeName: string; readonly known: readonly string[]; readonly own: readonly string[] },
): Problem {
  const message =
    known.length === 0 || own.length === 0
      ? `the addresses of ${known.length === 0 ? `Node ${nodeName}` : 'this host'} are unknown, so the host may not be that of the Node`
      : `Node ${nodeName} has the addresses ${listed(known)}, but this host has none of them (its addresses: ${listed(own)})`;
  return { host, code: 'NODE_ADDRESS_MISMATCH', message, hint: 'Check the Node name. A cloned host needs its own machine-id' };
}

/** Two hosts of a run claim the same Node. */
export function nodeClaimedTwice(host: string, { nodeName, other }: { readonly nodeName: string; readonly other: string }): Problem {
  return {
    host,
    code: 'NODE_CLAIMED_TWICE',
    message: `Node ${nodeName} is claimed by this host and by ${other}`,
    hint: 'Run the command for the right host only. Reset a cloned host and give it its own hostname and machine-id',
  };
}

export function machineIdShared(host: string, other: string): Problem {
  return {
    host,
    code: 'MACHINE_ID_SHARED',
    message: `this host and ${other} have the same machine-id`,
    hint: 'Give one of the hosts a new machine-id: rm /etc/machine-id; systemd-machine-id-setup; systemctl restart kubelet',
  };
}

/** Shows at most eight: a host may have thousands of addresses. */
function listed(addresses: readonly string[]): string {
  return `${addresses.slice(0, 8).join(', ')}${addresses.length > 8 ? ', …' : ''}`;
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
