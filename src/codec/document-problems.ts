import type { Position, Problem } from '../base/errors.ts';
import { maskSecrets } from '../base/text/mask.ts';

/** Problems of a field have no position yet: the reader of the document, or `placeFinding`, adds position and path. */

/** Quoted and truncated, with texts that look like secrets masked, and invisible characters escaped. */
export function quoteValue(text: string): string {
  const shown = maskSecrets(text);
  const quoted = JSON.stringify(shown.length > 80 ? `${shown.slice(0, 80)}…` : shown);
  return quoted.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

function error(code: string, message: string, hint?: string): Problem {
  return { code, message, hint };
}

function warning(code: string, message: string, hint?: string): Problem {
  return { code, message, hint, severity: 'warning' };
}

// ---- files and documents

/** The file has no document for the command. `accepted` are the kinds that it reads. */
export function noDocument(file: string, accepted: readonly string[]): Problem {
  const hint = `Add a document of kind ${orList(accepted)}`;
  return { ...error('CONFIG_EMPTY', 'the file contains no configuration for this command', hint), position: { file, line: 1, column: 1 } };
}

export function documentNotMapping(position: Position): Problem {
  const hint = 'Start the document with apiVersion and kind';
  return { ...error('CONFIG_WRONG_TYPE', 'a configuration document must be an object', hint), position };
}

export function missingHeader(member: 'apiVersion' | 'kind', position: Position): Problem {
  const hint = `Add ${member === 'apiVersion' ? 'apiVersion: kubeadm.k8s.io/v1beta4' : 'the kind of the document, e.g. kind: InitConfiguration'}`;
  return { ...error('CONFIG_MISSING_HEADER', `the document has no ${member}`, hint), position, path: member };
}

export function wrongHeader(member: 'apiVersion' | 'kind', position: Position): Problem {
  return { ...error('CONFIG_WRONG_TYPE', 'expected a string'), position, path: member };
}

export function unknownVersion(apiVersion: string, position: Position, readable: readonly string[]): Problem {
  return { ...error('CONFIG_UNKNOWN_VERSION', `unknown version ${quoteValue(apiVersion)}`, `Use ${orList(readable)}`), position };
}

export function unknownKind(
  apiVersion: string,
  kind: string,
  position: Position,
  accepted: readonly string[],
  likely: string | null,
): Problem {
  const hint = likely === null ? `Supported kinds: ${andList(accepted)}` : `Did you mean ${likely}?`;
  return { ...error('CONFIG_UNKNOWN_KIND', `unknown kind ${quoteValue(kind)} in ${quoteValue(apiVersion)}`, hint), position };
}

export function kindNotInVersion(apiVersion: string, kind: string, position: Position): Problem {
  const hint = 'Use apiVersion: kubeadm.k8s.io/v1beta4';
  const message = `kind ${kind} does not exist in ${apiVersion}; v1beta4 is the first version with this kind`;
  return { ...error('CONFIG_UNKNOWN_KIND', message, hint), position };
}

/** A version that is no longer supported. `kubeadm` is the last release that can convert it. */
export function oldVersion(apiVersion: string, kubeadm: string, position: Position): Problem {
  const hint = `Convert the file with kubeadm ${kubeadm}: kubeadm config migrate --old-config FILE --new-config FILE`;
  return { ...error('CONFIG_OLD_VERSION', `${apiVersion} is no longer supported`, hint), position };
}

export function deprecatedVersion(apiVersion: string, position: Position): Problem {
  const hint = 'Convert the file with kubeletadm config migrate --old-config FILE';
  const message = `${apiVersion} is deprecated and no longer supported from Kubernetes 1.37 on`;
  return { ...warning('CONFIG_DEPRECATED_VERSION', message, hint), position };
}

export function duplicateKind(kind: string, position: Position, firstLine: number): Problem {
  const hint = 'Remove one of the two documents';
  return { ...error('CONFIG_DUPLICATE_KIND', `duplicate ${kind}, first on line ${firstLine}`, hint), position };
}

export function ignoredDocument(kind: string, position: Position, accepted: readonly string[]): Problem {
  return { ...warning('CONFIG_IGNORED_DOCUMENT', `${kind} is ignored: this command reads ${andList(accepted)}`), position };
}

// ---- structure

export function unknownField(hint: string | undefined): Problem {
  return error('CONFIG_UNKNOWN_FIELD', 'unknown field', hint);
}

export function duplicateField(firstLine: number): Problem {
  return error('CONFIG_DUPLICATE_FIELD', `duplicate field, first on line ${firstLine}`, 'Remove one of the two fields');
}

/** A value of the wrong type; `expected` and `found` are descriptions. */
export function expectedType(expected: string, found: string, hint?: string): Problem {
  return error('CONFIG_WRONG_TYPE', `expected ${expected}, found ${found}`, hint);
}

export function nullItem(): Problem {
  return error('CONFIG_NULL_ITEM', 'the list item is empty', 'Remove the item, or add a value after the dash');
}

export function missingField(values?: readonly string[]): Problem {
  return error('CONFIG_MISSING_VALUE', 'required field is missing', values && `Use ${orList(values)}`);
}

export function numberOutOfRange(text: string): Problem {
  return error('CONFIG_OUT_OF_RANGE', `${quoteValue(text)} does not fit a 32-bit integer`);
}

export function invalidEnum(text: string, values: readonly string[], likely: string | null): Problem {
  const message = `${quoteValue(text)} is not one of ${andList(values)}`;
  return error('CONFIG_INVALID_VALUE', message, likely === null ? undefined : `Did you mean ${likely}?`);
}

// ---- values

export function invalidNodeName(name: string): Problem {
  const hint = 'A node name has at most 253 lower-case letters, digits, dashes and dots, and begins and ends with a letter or digit';
  return error('CONFIG_INVALID_NAME', `${quoteValue(name)} is not a valid node name`, hint);
}

/** The kubelet would register under another name than the one in its certificate and in the control plane. */
export function nodeNameConflict(name: string, override: string): Problem {
  const message = `the node is named ${quoteValue(name)}, but kubeletExtraArgs has hostname-override ${quoteValue(override)}`;
  return error('CONFIG_NODE_NAME_CONFLICT', message, 'Set the name only in nodeRegistration.name');
}

/** Not the socket of a container runtime. `corrected`: the value that was probably meant. */
export function invalidSocket(socket: string, corrected: string | null): Problem {
  const hint = corrected === null ? 'Use a URL such as unix:///var/run/containerd/containerd.sock' : `Use ${corrected}`;
  return error('CONFIG_INVALID_SOCKET', `${quoteValue(socket)} is not the URL of a unix socket`, hint);
}

export function socketWithoutScheme(socket: string): Problem {
  return warning('CONFIG_SOCKET_WITHOUT_SCHEME', `${quoteValue(socket)} has no scheme: using unix://${socket}`, `Use unix://${socket}`);
}

/** A socket that no container runtime serves any more. `reason` is a clause. */
export function deadSocket(socket: string, reason: string): Problem {
  const hint =
    'Use the socket of the installed runtime: unix:///var/run/containerd/containerd.sock, unix:///var/run/crio/crio.sock, or unix:///var/run/cri-dockerd.sock for Docker';
  return warning('CONFIG_DEAD_SOCKET', `${quoteValue(socket)} is not the socket of a container runtime: ${reason}`, hint);
}

export function invalidArgument(name: string): Problem {
  const other = 'Write only the name of the flag in name, and its value in value';
  const hint = name.startsWith('-') ? 'Remove the leading dashes' : other;
  return error('CONFIG_INVALID_ARGUMENT', `${quoteValue(name)} is not a valid flag name`, hint);
}

export function invalidTaint(what: 'key' | 'value', text: string): Problem {
  const form = 'at most 63 letters, digits, dashes, underscores and dots, and begins and ends with a letter or digit';
  const hint = what === 'key' ? `A key has ${form}; a DNS name and a slash may precede it` : `A value is empty or has ${form}`;
  return error('CONFIG_INVALID_TAINT', `${quoteValue(text)} is not a valid taint ${what}`, hint);
}

export function duplicateTaint(key: string, effect: string): Problem {
  return error('CONFIG_INVALID_TAINT', `duplicate taint ${quoteValue(`${key}:${effect}`)}`, 'Remove one of the two taints');
}

export function ignoreAllNotAlone(): Problem {
  return error('CONFIG_CONFLICT', "'all' cannot be combined with other checks", "Use 'all' alone, or list the checks without it");
}

/** An unknown preflight check: a warning, because kubeadm accepts any text, and scripts list checks of other versions. */
export function unknownCheckName({ message, hint }: { readonly message: string; readonly hint: string }): Problem {
  return warning('CONFIG_UNKNOWN_CHECK', `${message}: ignored`, hint);
}

/** `taints` that the flag `register-with-taints` overrides. */
export function taintsReplaced(flag: string): Problem {
  const message = `these taints are ignored: the kubelet registers only with the taints of its flag register-with-taints=${flag}`;
  const hint = 'Set all taints in nodeRegistration.taints, and remove register-with-taints from kubeletExtraArgs';
  return warning('CONFIG_TAINTS_REPLACED', message, hint);
}

/** A path that must be absolute. `ending` is the required file name extension. */
export function notAbsolute(path: string, ending?: string): Problem {
  const message = ending === undefined ? 'is not an absolute path' : `is not an absolute path to a ${ending} file`;
  return error('CONFIG_INVALID_PATH', `${quoteValue(path)} ${message}`, 'Use a path that begins with a slash');
}

export function invalidAddress(text: string): Problem {
  const hint = /(?:^|\.)0[0-9]/.test(text)
    ? 'Remove the leading zeros from the numbers of the address'
    : 'Use an address such as 192.168.0.10 or fd00::10';
  return error('CONFIG_INVALID_ADDRESS', `${quoteValue(text)} is not a valid IP address`, hint);
}

/** An address at which other hosts cannot reach the API server. */
export function addressNotReachable(text: string): Problem {
  const message = `${quoteValue(text)} cannot be the address of the API server: other hosts cannot reach it`;
  return error('CONFIG_INVALID_ADDRESS', message, "Use an address of one of the host's interfaces");
}

export function invalidPort(port: number | string): Problem {
  const shown = typeof port === 'number' ? port : quoteValue(port);
  return error('CONFIG_OUT_OF_RANGE', `${shown} is not a valid port`, 'Use a port from 1 to 65535');
}

export function invalidEndpoint(text: string, needsPort: boolean): Problem {
  const lacksPort = needsPort && /^[\w.-]+$/.test(text);
  const message = `${quoteValue(text)} ${lacksPort ? 'has no port' : `is not of the form ${needsPort ? 'ADDRESS:PORT' : 'HOST or HOST:PORT'}`}`;
  const [, rest] = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(.*)$/s.exec(text) ?? [];
  const hint =
    rest !== undefined
      ? `Remove the scheme: ${rest}`
      : `Use an endpoint such as ${needsPort ? '' : 'api.example.com or '}10.0.0.10:6443 or [fd00::10]:6443`;
  return error('CONFIG_INVALID_ENDPOINT', message, hint);
}

export function invalidEtcdUrl(text: string, needsHttps: boolean): Problem {
  const scheme = needsHttps ? 'https' : 'http or https';
  return error('CONFIG_INVALID_URL', `${quoteValue(text)} is not a valid ${scheme} URL`, 'Use a URL such as https://10.0.0.20:2379');
}

export function discoveryFileNotHttps(): Problem {
  return error('CONFIG_INVALID_URL', 'must be a path or an https URL');
}

export function invalidImageRepository(text: string): Problem {
  const hint = /^https?:\/\//.test(text)
    ? 'Remove the scheme'
    : 'Use a repository such as registry.example.com:5000/k8s, without tag and trailing slash';
  return error('CONFIG_INVALID_IMAGE_REPOSITORY', `${quoteValue(text)} is not a valid image repository`, hint);
}

export function invalidSan(text: string): Problem {
  const hint = 'Use an IP address, a lower-case DNS name, or a wildcard such as *.example.com';
  return error('CONFIG_INVALID_SAN', `${quoteValue(text)} is neither an IP address nor a DNS name`, hint);
}

export function invalidVersion(text: string): Problem {
  const hint = 'Use a version such as v1.36.2, or a label such as stable-1.36';
  return error('CONFIG_INVALID_VERSION', `${quoteValue(text)} is not a valid Kubernetes version`, hint);
}

export function invalidDomain(text: string): Problem {
  const hint = 'A domain has lower-case letters, digits, dashes and dots, such as cluster.local';
  return error('CONFIG_INVALID_NAME', `${quoteValue(text)} is not a valid DNS domain`, hint);
}

export function invalidCidr(text: string): Problem {
  const message = `${quoteValue(text)} is not a CIDR or two comma-separated CIDRs`;
  return error('CONFIG_INVALID_CIDR', message, 'Use an address and a prefix length, such as 10.244.0.0/16');
}

/** A syntactically valid subnet that cannot be used. `why` is a clause. */
export function unusableSubnet(text: string, why: string, hint?: string): Problem {
  return error('CONFIG_INVALID_SUBNET', `${quoteValue(text)} ${why}`, hint);
}

export function subnetsOverlap(pods: string, services: string): Problem {
  const message = `the pod subnet (${pods}) and the service subnet (${services}) overlap`;
  return warning('CONFIG_SUBNETS_OVERLAP', message, 'Use subnets that do not overlap');
}

export function unknownFeatureGate(name: string, known: readonly string[], likely: string | null): Problem {
  const hint =
    likely === null
      ? `kubeadm supports ${andList(known)}; set feature gates of the kubelet in KubeletConfiguration`
      : `Did you mean ${likely}?`;
  return error('CONFIG_UNKNOWN_FEATURE_GATE', `kubeadm has no feature gate ${quoteValue(name)}`, hint);
}

export function deprecatedFeatureGate(name: string, hint: string): Problem {
  return warning('CONFIG_DEPRECATED_FEATURE_GATE', `the feature gate ${name} is deprecated`, hint);
}

export function mutuallyExclusive(a: string, b: string): Problem {
  return error('CONFIG_CONFLICT', `${a} and ${b} are mutually exclusive`, 'Remove one of the two');
}

export function requiredWith(what: string, reason: string, hint?: string): Problem {
  return error('CONFIG_MISSING_VALUE', `${what} is required ${reason}`, hint);
}

export function negativeDuration(text: string, hint?: string): Problem {
  return error('CONFIG_OUT_OF_RANGE', `${quoteValue(text)} is negative`, hint);
}

export function longValidity(text: string, recommended: string): Problem {
  return warning('CONFIG_LONG_VALIDITY', `${text} exceeds the recommended ${recommended}`);
}

export function outlivesCa(text: string, caValidity: string): Problem {
  return warning('CONFIG_LONG_VALIDITY', `${text} exceeds caCertificateValidityPeriod (${caValidity})`);
}

export function unknownTokenUsage(text: string, known: readonly string[]): Problem {
  return error('CONFIG_INVALID_VALUE', `${quoteValue(text)} is not a valid token usage`, `Use ${orList(known)}`);
}

export function invalidTokenGroup(text: string): Problem {
  const hint = 'A group is system:bootstrappers: followed by lower-case letters, digits, colons and dashes';
  return error('CONFIG_INVALID_VALUE', `${quoteValue(text)} is not a valid group of bootstrap tokens`, hint);
}

/** A token always has groups, by default those of kubeadm; kubeadm 1.36 rejects groups without this usage. */
export function tokenWithoutAuthentication(): Problem {
  const message = 'usages must contain authentication, because kubeadm adds a default group to every token, and groups need this usage';
  return error('CONFIG_CONFLICT', message, 'Add authentication to usages');
}

export function invalidPin(text: string): Problem {
  const hint = 'A pin is sha256: followed by 64 hexadecimal digits, as printed by kubeletadm token create --print-join-command';
  return error('CONFIG_INVALID_PIN', `${quoteValue(text)} is not a valid CA certificate pin`, hint);
}

export function discoveryMissing(): Problem {
  const hint =
    'On a control plane, run kubeletadm token create --print-join-command, which prints the complete join command. Or pass --discovery-file, or --config with discovery.bootstrapToken or discovery.file';
  return error('CONFIG_MISSING_VALUE', 'no discovery method configured', hint);
}

export function pinMissing(): Problem {
  const hint =
    'On a control plane, run kubeletadm token create --print-join-command, and pass the printed --discovery-token-ca-cert-hash. Or pass the CA certificate with --ca-cert. To accept any CA (insecure), pass --discovery-token-unsafe-skip-ca-verification';
  return error('CONFIG_MISSING_VALUE', 'token discovery requires caCertHashes to verify the cluster CA', hint);
}

// ---- flags

/** An invalid value of a flag; `text` is null when the value must not be shown. */
export function invalidFlag(text: string | null, expected: string, code = 'CONFIG_INVALID_FLAG'): Problem {
  return error(code, text === null ? `the value is not ${expected}` : `${quoteValue(text)} is not ${expected}`);
}

export function flagNeeds(other: string): Problem {
  return error('CONFIG_FLAG_NEEDS', `has no effect without ${other}`, `Add ${other}, or omit this flag`);
}

function orList(items: readonly string[]): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} or ${items.at(-1)}` : (items[0] ?? '');
}

function andList(items: readonly string[]): string {
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} and ${items.at(-1)}` : (items[0] ?? '');
}
