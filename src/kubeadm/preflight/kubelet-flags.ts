import type { Arg } from '../../base/arg.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { nodeNameOf, unknownFlag, wrongArgument } from '../../kubelet/flags/check-extra-args.ts';
import { parseCommandLine } from '../../kubelet/flags/command-line.ts';
import { nodeLabelIssues } from '../../kubelet/flags/node-labels.ts';
import type { Finding } from './check.ts';

export interface KubeletFlagsInput {
  /** Flags set by kubeletadm. */
  readonly flags: readonly Arg[];
  /** The words of `KUBELET_EXTRA_ARGS` and its file: set on the host, last on the command line. */
  readonly hostWords: readonly string[];
  readonly hostFile: string;
  readonly nodeName: string;
  readonly minor: Minor;
  /** No kubelet is installed yet, and its future version may have other flags: errors become warnings. */
  readonly assumed: boolean;
  readonly catalogue: Catalogue;
}

const ID = 'KubeletFlags';

/**
 * Finds kubelet flags that make the kubelet fail at startup or register under another name. kubeadm lacks this check:
 * the kubelet crashes after the restart.
 */
export function kubeletFlagFindings(input: KubeletFlagsInput): readonly Finding[] {
  const { flags, hostWords, hostFile, nodeName, minor, catalogue } = input;
  const host = parseCommandLine(hostWords, { catalogue, minor });
  const severity = input.assumed ? 'warning' : 'error';
  const finding = (message: string, hint: string): Finding => ({ id: ID, severity, message, hint });
  const inFile = `KUBELET_EXTRA_ARGS in ${hostFile}`;
  const unknown = host.flags.flatMap((flag) => {
    const problem = unknownFlag(flag, minor, catalogue) ?? wrongArgument(flag, minor, catalogue);
    return problem === null ? [] : [finding(`${inFile}: ${problem.message}`, `${problem.hint ?? 'Remove the flag'}`)];
  });
  const others = host.others.map((word) =>
    finding(`${inFile}: "${word}" is not a flag, and the kubelet takes no arguments`, 'Remove the word'),
  );
  const names = host.flags.filter(({ name, value }) => name === 'hostname-override' && nodeNameOf(value) !== nodeName);
  const contradicted = names.map(({ value }) =>
    finding(
      `${inFile}: hostname-override is ${value}, but the node's name is ${nodeName}`,
      `Remove the flag, and set the node name with --node-name ${value}`,
    ),
  );
  return [...unknown, ...others, ...contradicted, ...labels(flags, 'node-labels'), ...labels(host.flags, inFile)];

  function labels(from: readonly Arg[], where: string): readonly Finding[] {
    const given = from.filter(({ name }) => name === 'node-labels');
    return given.flatMap(({ value }) =>
      nodeLabelIssues(value).map((issue) =>
        finding(
          `${where}: ${issue}; the kubelet would exit at startup`,
          isMalformed(value)
            ? 'Write labels like pool=edge,zone=a'
            : 'Remove the label from the flag. To set the label, pass --kubeconfig admin.conf to join, or run kubectl label node',
        ),
      ),
    );
  }
}

function isMalformed(labels: string): boolean {
  return nodeLabelIssues(labels, { byAdministrator: true }).length > 0;
}
