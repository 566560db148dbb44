import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { JoinRequest } from '../fleet/use-cases/open-join.ts';
import { isSinglePhase } from '../host/run-settings.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import { addAllowOptions, IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import {
  addApiServerOptions,
  addHostOptions,
  addKubeconfigOptions,
  addNodeOptions,
  addPlanOptions,
  addShowOrigin,
  collect,
  TAKE_OVER,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import { definePhaseCommands, phaseName } from './phase-commands.ts';
import { hostsRequest, kubeadmFlags, kubeconfigRequest, kubeletRunRequest, nodeRequest, planRequest } from './request-parts.ts';
import { addHostRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addConfirmOptions, addReasonOption, writingRequest } from './writing-options.ts';

/** `join`, `join phase`. */
export function defineJoin(join: Command, on: On, phases: PhaseLists): void {
  const whole = ([endpoint]: readonly string[], given: CommandOptions): WithPlan<JoinRequest> => joinRequest(given, { endpoint });
  const options = (command: Command): Command =>
    addReasonOption(
      addConfirmOptions(
        addHostRolloutOptions(addHostOptions(addAllowOptions(addNodeOptions(addJoinOptions(addShowOrigin(addPlanOptions(command))))))),
      ),
    );
  addSections(on(options(join.argument('[address:port]', 'address of the API server')), whole, runJoin), {
    notes: IMPACT_NOTES,
    phases: phases.join,
    examples: EXAMPLES,
  });
  const phase = join
    .command('phase')
    .description('Run one phase of join. Example: join phase control-plane-prepare certs runs the phase control-plane-prepare/certs')
    .argument('<name...>', 'name of a phase, followed by the address:port of the API server');
  on(options(phase), phaseRequest, runJoin);
  definePhaseCommands(phase, phases.join, {
    run: (command, words) =>
      on(
        command.argument('[address:port]', 'address of the API server'),
        ([endpoint], given) => joinRequest(given, { endpoint, phase: phaseName(words) ?? '' }),
        runJoin,
      ),
  });
}

function addJoinOptions(command: Command): Command {
  addOptionGroup(command, HEADINGS.discovery, (discovery) =>
    discovery
      .option('--token <token>', 'value for both --discovery-token and --tls-bootstrap-token')
      .option('--discovery-token <token>', 'token to validate the cluster information with')
      .option('--discovery-token-ca-cert-hash <type:value>', "pin of the cluster's CA, sha256:<hex> (repeatable)", collect)
      .option('--discovery-token-unsafe-skip-ca-verification', 'skip CA pinning: anyone who knows the token can impersonate the API server')
      .option('--discovery-file <file>', 'kubeconfig with the cluster information, a path or an https URL')
      .option('--tls-bootstrap-token <token>', 'token for the TLS bootstrap of the kubelet')
      .option('--ca-cert <file>', 'the CA certificate of the cluster, instead of --discovery-token-ca-cert-hash'),
  );
  addKubeconfigOptions(command, 'kubeconfig of an administrator, for labels and taints that a node cannot set itself (default: none)');
  addOptionGroup(command, HEADINGS.node, (node) =>
    node
      .option('--take-over', TAKE_OVER)
      .option(
        '--wait-ready [duration]',
        'wait until the Node is Ready and a test pod (the probe pod) runs on it. The duration limits the wait for Ready (5m if no duration is given); the wait for the pod is limited to 1m',
      ),
  );
  addOptionGroup(command, HEADINGS.controlPlane, (cluster) =>
    cluster
      .option('--control-plane', 'join the host as a control plane')
      .option('--certificate-key <key>', 'with --control-plane: key to decrypt the uploaded control plane certificates with'),
  );
  return addApiServerOptions(command, 'with --control-plane: ');
}

/** `join phase NAME... [ADDRESS:PORT]`: no phase has a colon in its name, and no address is without. */
function phaseRequest(args: readonly string[], options: CommandOptions): WithPlan<JoinRequest> {
  const last = args.at(-1);
  const endpoint = last?.includes(':') ? last : undefined;
  return joinRequest(options, { endpoint, phase: phaseName(args.slice(0, endpoint === undefined ? undefined : -1)) ?? '' });
}

function joinRequest(
  options: CommandOptions,
  { endpoint, phase }: { readonly endpoint: string | undefined; readonly phase?: string },
): WithPlan<JoinRequest> {
  const caFile = flagText(options, 'caCert');
  if (caFile !== undefined && flagText(options, 'discoveryFile') !== undefined)
    throw usageError('--ca-cert and --discovery-file cannot be combined', 'A discovery file contains the CA: omit --ca-cert');
  return {
    endpoint,
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    caFile,
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    node: nodeRequest(options),
    plan: planRequest(options),
    run: kubeletRunRequest(options, phase),
    rules: rulesRequest(options),
    writing: writingRequest(options, 'join'),
    takeOver: options.takeOver === true,
    waitReadyMs: waitReadyMs(options),
  };
}

const WAIT_READY_MS = 300_000;

/** The default of `--wait-ready` without a value: five minutes. */
function waitReadyMs({ waitReady }: CommandOptions): number | null {
  if (waitReady === true) return WAIT_READY_MS;
  if (typeof waitReady !== 'string') return null;
  const nanoseconds = parseGoDuration(waitReady);
  if (nanoseconds === null || nanoseconds <= 0n)
    throw usageError(`--wait-ready ${waitReady} is not a valid duration`, 'Use a duration such as --wait-ready=90s or --wait-ready=5m');
  return Number(nanoseconds / 1_000_000n);
}

async function runJoin(services: Services, request: WithPlan<JoinRequest>): Promise<ExitCode> {
  const [{ openJoin }, { joinDone }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-join.ts'),
    import('./kubeadm-output.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, {
    title: 'join',
    open: (scope) => openJoin(services, request, scope),
    applied: ({ run, joins }, { changes }) => {
      if (services.programName === 'kubeadm' && !isSinglePhase(run) && changes.length > 0) services.output.stdout(joinDone(joins, changes));
    },
  });
}

const EXAMPLES = `  # the command printed by token create --print-join-command, with --host added
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef \\
    --discovery-token-ca-cert-hash sha256:<hex> --host root@10.0.0.12
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --ca-cert ca.crt --host root@10.0.0.12
  # with a kubeconfig that contains the CA of the cluster, from a file or an https URL
  kubeletadm join --discovery-file cluster.conf --host node2 --host node3 --dry-run
  kubeletadm join --config join.yaml --overlay node2-kubelet.yaml --host node2`;
