import type { Position, Problem } from '../base/errors.ts';
import { maskSecrets } from '../base/text/mask.ts';

/**
 * Problems of kubeadm's configuration documents. Those of a field have no place yet: the reader of the document, or `placeFinding`, adds
 * position and path.
 */

/**
 * A value the user wrote, in quotes and cut to a readable length. What looks like a secret is masked; characters that are not seen, or that
 * a terminal would obey, are escaped.
 */
export function quoteValue(text: string): string {
  const shown = maskSecrets(text);
  const quoted = JSON.stringify(shown.length > 80 ? `${shown.slice(0, 80)}…` : shown);
  return quoted.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

function error(code: string, message: string, hint?: string): Problem {
  return { code, message, ...(hint === undefined ? {} : { hint }) };
}

function warning(code: string, message: string, hint?: string): Problem {
  return { ...error(code, message, hint), severity: 'warning' };
}

// ---- files and documents

/** Nothing in the file is for the command. `accepted` are the kinds it reads. */
export function noDocument(file: string, accepted: readonly string[]): Problem {
  const hint = `It may hold ${orList(accepted)}`;
  return { ...error('CONFIG_EMPTY', 'the file holds no configuration for this command', hint), position: { file, line: 1, column: 1 } };
}

/** A document that is a list or a single value. */
export function documentNotMapping(position: Position): Problem {
  return { ...error('CONFIG_WRONG_TYPE', 'a configuration document is a mapping', 'Begin it with apiVersion and kind'), position };
}

/** A document without apiVersion or kind. */
export function missingHeader(member: 'apiVersion' | 'kind', position: Position): Problem {
  const hint = `Begin it with ${member === 'apiVersion' ? 'apiVersion: kubeadm.k8s.io/v1beta4' : 'kind, such as kind: InitConfiguration'}`;
  return { ...error('CONFIG_MISSING_HEADER', `the document has no ${member}`, hint), position, path: member };
}

/** apiVersion or kind is no string. */
export function wrongHeader(member: 'apiVersion' | 'kind', position: Position): Problem {
  return { ...error('CONFIG_WRONG_TYPE', 'expected a string'), position, path: member };
}

/** A group and kind that mean nothing here. */
export function unknownKind(
  apiVersion: string,
  kind: string,
  position: Position,
  accepted: readonly string[],
  likely: string | null,
): Problem {
  const hint = likely === null ? `Known are ${andList(accepted)}` : `Did you mean ${likely}?`;
  return { ...error('CONFIG_UNKNOWN_KIND', `unknown kind ${quoteValue(kind)} of ${quoteValue(apiVersion)}`, hint), position };
}

/** A version of a known group that does not exist, or not yet. */
export function unknownVersion(apiVersion: string, position: Position, readable: readonly string[]): Problem {
  return { ...error('CONFIG_UNKNOWN_VERSION', `unknown version ${quoteValue(apiVersion)}`, `Write ${orList(readable)}`), position };
}

/** A kind that came with a later version than the one written. */
export function kindNotInVersion(apiVersion: string, kind: string, position: Position): Problem {
  const hint = 'Write apiVersion: kubeadm.k8s.io/v1beta4';
  return { ...error('CONFIG_UNKNOWN_KIND', `${apiVersion} has no ${kind}: it came with v1beta4`, hint), position };
}

/** A version that was read once. `kubeadm` is the last release that can convert it. */
export function oldVersion(apiVersion: string, kubeadm: string, position: Position): Problem {
  const hint = `Convert the file with kubeadm ${kubeadm}: kubeadm config migrate --old-config FILE --new-config FILE`;
  return { ...error('CONFIG_OLD_VERSION', `${apiVersion} is no longer read`, hint), position };
}

/** A version that is still read, but not for long. */
export function deprecatedVersion(apiVersion: string, position: Position): Problem {
  const hint = 'Convert the file with config migrate';
  return { ...warning('CONFIG_DEPRECATED_VERSION', `${apiVersion} is deprecated; Kubernetes 1.37 no longer reads it`, hint), position };
}

/** A kind given twice in a file. */
export function duplicateKind(kind: string, position: Position, firstLine: number): Problem {
  const hint = 'Keep one of the documents';
  return { ...error('CONFIG_DUPLICATE_KIND', `${kind} is given twice, first on line ${firstLine}`, hint), position };
}

/** A document the command has no use for. */
export function ignoredDocument(kind: string, position: Position, accepted: readonly string[]): Problem {
  return { ...warning('CONFIG_IGNORED_DOCUMENT', `${kind} is ignored: this command reads ${andList(accepted)}`), position };
}

// ---- structure

/** A field the type does not have. */
export function unknownField(hint: string | undefined): Problem {
  return error('CONFIG_UNKNOWN_FIELD', 'unknown field', hint);
}

/** A field given twice in one mapping. */
export function duplicateField(firstLine: number): Problem {
  return error('CONFIG_DUPLICATE_FIELD', `given twice, first on line ${firstLine}`, 'Keep one of them');
}

/** A value of the wrong type; both described in words. */
export function expectedType(expected: string, found: string, hint?: string): Problem {
  return error('CONFIG_WRONG_TYPE', `expected ${expected}, found ${found}`, hint);
}

/** A dash with nothing behind it. */
export function nullItem(): Problem {
  return error('CONFIG_NULL_ITEM', 'this item of the list is empty', 'Remove it, or write a value behind the dash');
}

/** Something that must be given. */
export function missingField(values?: readonly string[]): Problem {
  return error('CONFIG_MISSING_VALUE', 'this is required', values && `Write ${orList(values)}`);
}

/** An integer that does not fit its type. */
export function numberOutOfRange(text: string): Problem {
  return error('CONFIG_OUT_OF_RANGE', `${quoteValue(text)} does not fit a 32-bit integer`);
}

/** A value that is none of those allowed. */
export function invalidEnum(text: string, values: readonly string[], likely: string | null): Problem {
  const message = `${quoteValue(text)} is not one of ${andList(values)}`;
  return error('CONFIG_INVALID_VALUE', message, likely === null ? undefined : `Did you mean ${likely}?`);
}

// ---- values

/** A node name that Kubernetes would refuse. */
export function invalidNodeName(name: string): Problem {
  const hint = 'A node name has lower-case letters, digits, dashes and dots, at most 253, and begins and ends with a letter or digit';
  return error('CONFIG_INVALID_NAME', `${quoteValue(name)} is not a node name`, hint);
}

/** The kubelet would register under another name than the one its certificate and the control plane use. */
export function nodeNameConflict(name: string, override: string): Problem {
  const message = `the node is named ${quoteValue(name)}, but kubeletExtraArgs has hostname-override ${quoteValue(override)}`;
  return error('CONFIG_NODE_NAME_CONFLICT', message, 'Write the name once, as nodeRegistration.name');
}

/** Not a socket of a container runtime. */
export function invalidSocket(socket: string): Problem {
  const hint = 'Write it like unix:///var/run/containerd/containerd.sock';
  return error('CONFIG_INVALID_SOCKET', `${quoteValue(socket)} is not the URL of a unix socket`, hint);
}

/** A socket given as a plain path. */
export function socketWithoutScheme(socket: string): Problem {
  return warning(
    'CONFIG_SOCKET_WITHOUT_SCHEME',
    `${quoteValue(socket)} has no scheme: taken as unix://${socket}`,
    'Write unix:// in front',
  );
}

/** A flag name as no component could take it. */
export function invalidArgument(name: string): Problem {
  const dashes = name.startsWith('-');
  const message = `${quoteValue(name)} is not the name of a flag`;
  return error(
    'CONFIG_INVALID_ARGUMENT',
    message,
    dashes ? 'Leave the dashes in front away' : 'Write the name alone; the value goes into value',
  );
}

/** A part of a taint that the API server would refuse. */
export function invalidTaint(what: 'key' | 'value', text: string): Problem {
  const form = 'letters, digits, dashes, underscores and dots, at most 63, beginning and ending with a letter or digit';
  const hint = what === 'key' ? `A key has ${form}; a DNS name and a slash may stand in front` : `A value is empty or has ${form}`;
  return error('CONFIG_INVALID_TAINT', `${quoteValue(text)} is not the ${what} of a taint`, hint);
}

/** Two taints with one key and effect. */
export function duplicateTaint(key: string, effect: string): Problem {
  return error('CONFIG_INVALID_TAINT', `the taint ${quoteValue(`${key}:${effect}`)} is given twice`, 'Keep one of them');
}

/** `all` beside single checks. */
export function ignoreAllNotAlone(): Problem {
  return error('CONFIG_CONFLICT', "'all' stands beside single checks", "Write 'all' alone, or the checks without it");
}

/** A name of no preflight check. */
export function unknownCheckName({ message, hint }: { readonly message: string; readonly hint: string }): Problem {
  return error('CONFIG_UNKNOWN_CHECK', message, hint);
}

/** `taints` that the flag of the same purpose replaces. */
export function taintsReplaced(flag: string): Problem {
  const message = `the kubelet registers with the taints of register-with-taints=${flag} alone`;
  return warning('CONFIG_TAINTS_REPLACED', message, 'Write all taints here, and remove register-with-taints from kubeletExtraArgs');
}

/** A path that must be absolute. `ending` is demanded of its name. */
export function notAbsolute(path: string, ending?: string): Problem {
  const message = ending === undefined ? 'is not an absolute path' : `is not an absolute path to a ${ending} file`;
  return error('CONFIG_INVALID_PATH', `${quoteValue(path)} ${message}`, 'It must begin with a slash');
}

/** An IP address that is none. */
export function invalidAddress(text: string): Problem {
  const hint = /(?:^|\.)0[0-9]/.test(text) ? 'Write its numbers without leading zeros' : 'Write it like 192.168.0.10 or fd00::10';
  return error('CONFIG_INVALID_ADDRESS', `${quoteValue(text)} is not an IP address`, hint);
}

/** An address at which no other host could reach the API server. */
export function addressNotReachable(text: string): Problem {
  const message = `${quoteValue(text)} cannot be the address of the API server: other hosts do not reach it`;
  return error('CONFIG_INVALID_ADDRESS', message, "Give an address of one of the host's interfaces");
}

/** A port outside 1 to 65535. */
export function invalidPort(port: number | string): Problem {
  return error('CONFIG_OUT_OF_RANGE', `${typeof port === 'number' ? port : quoteValue(port)} is not a port`, 'Ports go from 1 to 65535');
}

/** Not `host` or `host:port`. */
export function invalidEndpoint(text: string, needsPort: boolean): Problem {
  const message = `${quoteValue(text)} is not ${needsPort ? 'a host and port' : 'a host, with or without port'}`;
  const [, rest] = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(.*)$/s.exec(text) ?? [];
  const hint =
    rest !== undefined
      ? `Leave the scheme away: ${rest}`
      : `Write it like ${needsPort ? '' : 'api.example.com or '}10.0.0.10:6443 or [fd00::10]:6443`;
  return error('CONFIG_INVALID_ENDPOINT', message, hint);
}

/** An endpoint of etcd that is no URL, or not one that fits. */
export function invalidEtcdUrl(text: string, needsHttps: boolean): Problem {
  const scheme = needsHttps ? 'https' : 'http or https';
  return error('CONFIG_INVALID_URL', `${quoteValue(text)} is not a URL with ${scheme}`, 'Write it like https://10.0.0.20:2379');
}

/** A discovery file that is a URL, but none of https that could be read. */
export function discoveryFileNotHttps(): Problem {
  return error('CONFIG_INVALID_URL', 'this is neither an https URL nor a path');
}

/** No image repository. */
export function invalidImageRepository(text: string): Problem {
  const hint = /^https?:\/\//.test(text)
    ? 'Leave the scheme away'
    : 'Write it like registry.example.com:5000/k8s, without tag and slash at the end';
  return error('CONFIG_INVALID_IMAGE_REPOSITORY', `${quoteValue(text)} is not an image repository`, hint);
}

/** A name that can't stand in a certificate. */
export function invalidSan(text: string): Problem {
  const hint = 'Write an IP address, a DNS name in lower case, or one with *. in front';
  return error('CONFIG_INVALID_SAN', `${quoteValue(text)} is neither an IP address nor a DNS name`, hint);
}

/** Neither a release nor a label. */
export function invalidVersion(text: string): Problem {
  const hint = 'Write it like v1.36.2, or a label such as stable-1.36';
  return error('CONFIG_INVALID_VERSION', `${quoteValue(text)} is not a Kubernetes version`, hint);
}

/** A domain that is none. */
export function invalidDomain(text: string): Problem {
  const hint = 'A domain has lower-case letters, digits, dashes and dots, as cluster.local';
  return error('CONFIG_INVALID_NAME', `${quoteValue(text)} is not a DNS domain`, hint);
}

/** Not a CIDR, nor two with a comma between. */
export function invalidCidr(text: string): Problem {
  const message = `${quoteValue(text)} is not a CIDR, nor two with a comma between`;
  return error('CONFIG_INVALID_CIDR', message, 'Write an address and the length of its prefix, such as 10.244.0.0/16');
}

/** A subnet that reads well but can't be used. `why` is a clause. */
export function unusableSubnet(text: string, why: string, hint?: string): Problem {
  return error('CONFIG_INVALID_SUBNET', `${quoteValue(text)} ${why}`, hint);
}

/** Pods and services would share addresses. */
export function subnetsOverlap(pods: string, services: string): Problem {
  const message = `pods (${pods}) and services (${services}) share addresses`;
  return warning('CONFIG_SUBNETS_OVERLAP', message, 'Give them networks that do not overlap');
}

/** A feature gate of kubeadm that does not exist. */
export function unknownFeatureGate(name: string, known: readonly string[], likely: string | null): Problem {
  const hint =
    likely === null ? `kubeadm has ${andList(known)}; gates of the kubelet go into KubeletConfiguration` : `Did you mean ${likely}?`;
  return error('CONFIG_UNKNOWN_FEATURE_GATE', `kubeadm has no feature gate ${quoteValue(name)}`, hint);
}

/** A feature gate on its way out. */
export function deprecatedFeatureGate(name: string, hint: string): Problem {
  return warning('CONFIG_DEPRECATED_FEATURE_GATE', `the feature gate ${name} is deprecated`, hint);
}

/** Both members of a pair that exclude each other. */
export function mutuallyExclusive(a: string, b: string): Problem {
  return error('CONFIG_CONFLICT', `${a} and ${b} exclude each other`, 'Keep one of them');
}

/** Something that is needed because of something else. */
export function requiredWith(what: string, reason: string): Problem {
  return error('CONFIG_MISSING_VALUE', `${what} is required ${reason}`);
}

/** A duration below zero. */
export function negativeDuration(text: string, hint?: string): Problem {
  return error('CONFIG_OUT_OF_RANGE', `${quoteValue(text)} is negative`, hint);
}

/** Certificates that live longer than kubeadm's own. */
export function longValidity(text: string, recommended: string): Problem {
  return warning('CONFIG_LONG_VALIDITY', `${text} is more than the usual ${recommended}`);
}

/** Certificates that outlive the authority that signs them. */
export function outlivesAuthority(text: string, authority: string): Problem {
  return warning('CONFIG_LONG_VALIDITY', `${text} is more than caCertificateValidityPeriod, ${authority}`);
}

/** A usage of bootstrap tokens that does not exist. */
export function unknownTokenUsage(text: string, known: readonly string[]): Problem {
  return error('CONFIG_INVALID_VALUE', `${quoteValue(text)} is not a usage of tokens`, `Write ${orList(known)}`);
}

/** A group no bootstrap token may give. */
export function invalidTokenGroup(text: string): Problem {
  const hint = 'Groups begin with system:bootstrappers: and go on with lower-case letters, digits, colons and dashes';
  return error('CONFIG_INVALID_VALUE', `${quoteValue(text)} is not a group of bootstrap tokens`, hint);
}

/** A token that can't be used to log in. It has groups whether they were written or not, and kubeadm 1.36 refuses the two together. */
export function signingAlone(): Problem {
  return error(
    'CONFIG_CONFLICT',
    'the groups of a token, by default those of kubeadm, need the usage authentication',
    'Add authentication to usages',
  );
}

/** A CA pin that could never match. */
export function invalidPin(text: string): Problem {
  const hint = 'A pin is sha256: and 64 hexadecimal digits, as kubeadm token create --print-join-command prints it';
  return error('CONFIG_INVALID_PIN', `${quoteValue(text)} is not the pin of a CA certificate`, hint);
}

/** A JoinConfiguration without discovery. */
export function discoveryMissing(): Problem {
  const hint =
    'Pass ADDRESS:PORT of the API server with --token and --discovery-token-ca-cert-hash (token create --print-join-command prints them), or --discovery-file, or --config with discovery.bootstrapToken or discovery.file';
  return error('CONFIG_MISSING_VALUE', 'no cluster to join was given', hint);
}

/** Nothing to recognise the cluster by. */
export function pinMissing(): Problem {
  const hint =
    'Give --discovery-token-ca-cert-hash (token create --print-join-command prints it) or the CA itself with --ca-cert, or spell out that any will do: --discovery-token-unsafe-skip-ca-verification';
  return error('CONFIG_MISSING_VALUE', 'token discovery needs caCertHashes to recognise the cluster', hint);
}

// ---- flags

/** A flag's value that can't be read; `text` is null when it must not be shown. */
export function invalidFlag(text: string | null, expected: string, code = 'CONFIG_INVALID_FLAG'): Problem {
  return error(code, text === null ? `this is not ${expected}` : `${quoteValue(text)} is not ${expected}`);
}

/** A flag that has no effect without another. */
export function flagNeeds(other: string): Problem {
  return error('CONFIG_FLAG_NEEDS', `has no effect without ${other}`, `Add ${other}, or leave it out`);
}

function orList(items: readonly string[]): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} or ${items.at(-1)}` : (items[0] ?? '');
}

function andList(items: readonly string[]): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} and ${items.at(-1)}` : (items[0] ?? '');
}
