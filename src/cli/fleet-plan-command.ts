import type { Command } from 'commander';
import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import type { FleetCluster } from '../fleet/file/model.ts';
import { signatureFileOf } from '../fleet/plan/plan-signatures.ts';
import type { SavedPlan } from '../fleet/plan/saved-plan.ts';
import type { PlanFleetRequest, planFleet } from '../fleet/use-cases/plan-fleet.ts';
import { IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { addRunOptions, addSignerOptions, fleetRunRequest, signerFiles } from './fleet-options.ts';
import type { ShowPlanRequest } from './fleet-plan-show.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addFleetSelectionOptions, addShowOrigin } from './options.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { DIFF_OF_PLAN, diffOption, outputOption } from './output-options.ts';
import { addReport } from './page-options.ts';
import type { RunPage } from './report/run-page.ts';
import { withPage } from './report/with-page.ts';
import { flagDuration, fleetRequest, outputRequest, planRequest } from './request-parts.ts';
import { addOrderOption, canaryOption, gatesOption, maxUnavailableOption, SERIAL } from './rollout-options.ts';

/** `plan`, `fleet plan`. */
export function definePlan(plan: Command, on: On): void {
  addOptionGroup(plan, HEADINGS.rollout, (rollout) =>
    rollout.addOption(canaryOption()).addOption(gatesOption()).addOption(maxUnavailableOption('that of apply')).addOption(SERIAL),
  );
  addOrderOption(plan);
  addOptionGroup(plan, HEADINGS.output, (output) =>
    output
      .option('--out <file>', 'file to save the plan to, for apply')
      .option('--valid-for <duration>', 'time after which apply refuses the saved plan, e.g. 8h (default: 24h; 1h with --sign)')
      .option(
        '--sign <key>',
        'file of the SSH key that signs the saved plan: a private key, or a public key whose private key is in ssh-agent. The signature is written next to the plan: plan.json.sig for --out plan.json',
      )
      .addOption(diffOption(DIFF_OF_PLAN))
      .addOption(
        outputOption(['text', 'json', 'yaml', 'markdown'], 'output format; markdown: for a merge request, with contents and diffs folded'),
      )
      .option('--exit-code', 'exit with code 6 if changes are pending'),
  );
  on(
    addRunOptions(addReport(addShowOrigin(plan)), { allow: PLANNED_ALLOW, allowPodLoss: PLANNED_POD_LOSS }),
    fleetPlanRequest,
    runFleetPlan,
  );
  defineShow(plan.command('show').description('Print a saved plan with its times of creation and expiration'), on);
  addSections(plan, { notes: PLAN_NOTES, examples: PLAN_EXAMPLES });
}

/** `plan show`, `fleet plan show`. */
function defineShow(show: Command, on: On): void {
  addFleetSelectionOptions(
    addSignerOptions(
      show
        .argument('<file>', "saved plan; '-' for standard input")
        .addOption(diffOption(DIFF_OF_PLAN))
        .addOption(outputOption(['text', 'json', 'yaml'])),
    ),
    { file: 'the saved plan' },
  );
  on(
    show,
    ([file = ''], options): ShowPlanRequest => ({
      file,
      signers: signerFiles(options),
      selection: fleetRequest(options).selection,
      output: outputRequest(options),
    }),
    async (...args) => (await import('./fleet-plan-show.ts')).runShowPlan(...args),
  );
  addSections(show, { examples: SHOW_EXAMPLES });
}

function fleetPlanRequest(_: readonly string[], options: CommandOptions): FleetPlanRequest {
  const [out, signingKey, report] = [flagText(options, 'out'), flagText(options, 'sign'), flagText(options, 'report')];
  if (report !== undefined && report === out) throw usageError('--out and --report name the same file', 'Pass two different files');
  if (signingKey !== undefined && out === undefined)
    throw usageError('--sign requires --out', 'Add --out FILE, the file of the saved plan');
  return {
    ...fleetRunRequest(options),
    output: planRequest(options),
    isMarkdown: options.output === 'markdown',
    out,
    report,
    signingKey,
    validForMs: flagDuration(options, 'validFor', { flag: '--valid-for', example: 'Use a duration such as 8h or 30m', least: 1 }),
  };
}

const PLANNED_ALLOW =
  'most disruptive class of changes that apply may make to a running kubelet; the classes are explained below (default: new-pods-only)';

const PLANNED_POD_LOSS =
  'also plan changes that terminate running pods or prevent new pods from starting; apply of the saved plan needs no further option';

const PLAN_NOTES = `Hosts that are not nodes yet would join the cluster. Existing nodes would get the configuration defined by the fleet file and the cluster.\n\n${IMPACT_NOTES}`;

const PLAN_EXAMPLES = `  kubeletadm plan -f fleet.yaml
  kubeletadm plan -f fleet.yaml --group edge --out plan.json
  # signed with a key of ssh-agent, and valid for a working day
  kubeletadm plan --out plan.json --sign ~/.ssh/id_ed25519.pub --valid-for 8h`;

const SHOW_EXAMPLES = `  kubeletadm plan show plan.json
  kubeletadm plan show plan.json --limit edge-017 -o json`;

interface FleetPlanRequest extends Omit<PlanFleetRequest, 'asDocument'> {
  readonly output: PlanRequest;
  readonly isMarkdown: boolean;
  /** The file of the HTML report; undefined: none. */
  readonly report: string | undefined;
}

/** `fleet plan`, `plan`. */
async function runFleetPlan(services: Services, request: FleetPlanRequest): Promise<ExitCode> {
  const { fleetFileOf } = await import('../fleet/use-cases/load-fleet.ts');
  const { output: plan, report } = request;
  const page = { command: 'plan', subject: fleetFileOf(request.file), reason: undefined, report, serve: undefined };
  const { exitCode, failure } = await withPage(services, page, async (shown) => {
    const result = await planAndPrint(services, request, shown);
    const pending = result.isPending && plan.failsIfChanged ? 6 : 0;
    return { failure: result.failure, exitCode: result.failure?.exitCode ?? pending };
  });
  if (failure !== null) throw failure;
  return exitCode;
}

async function planAndPrint(services: Services, request: FleetPlanRequest, page: RunPage | null): ReturnType<typeof planFleet> {
  const [
    { planFleet },
    { canaryLine, clusterLine, foldedLines, orderLine, planSummary, withoutCluster },
    { renderDocument },
    { showPlanText },
    { watchRun },
  ] = await Promise.all([
    import('../fleet/use-cases/plan-fleet.ts'),
    import('./fleet-report.ts'),
    import('./output/show-document.ts'),
    import('./output/show-plan.ts'),
    import('./watch-run.ts'),
  ]);
  const { output: plan, signingKey, isMarkdown } = request;
  const markdown = isMarkdown ? await import('./plan-markdown.ts') : null;
  const own = page === null ? null : { of: page, command: 'plan', state: 'planning' as const, hosts: [], canary: 0 };
  const watch = watchRun(services, plan, { title: 'plan', reads: true, page: own });
  return planFleet(
    services,
    { ...request, asDocument: plan.format !== 'text' },
    {
      ...watch,
      reporter: plan.format === 'text' ? withoutCluster(watch.reporter) : watch.reporter,
      warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
      planned: ({ outcomes, canary, batches, access, document, drainForecast }) => {
        watch.close();
        if (access !== null) page?.useCluster(access.cluster);
        if (document !== null && plan.format !== 'text')
          services.output.stdout(renderDocument({ ...document, ...(drainForecast === null ? {} : { drainForecast }) }, plan.format));
        else if (markdown !== null) services.output.stdout(markdown.planMarkdown(outcomes, { access, canary, batches }));
        else {
          const lines = foldedLines(outcomes, plan);
          showPlanText(
            services.output,
            joinLines([
              ...(lines.length === 0 ? [] : clusterLine(access)),
              ...lines,
              ...canaryLine(canary),
              ...orderLine(batches),
              planSummary(outcomes),
            ]),
            plan,
          );
        }
      },
      saved: (file, saved, { cluster }) => {
        page?.usePlan({ id: saved.id, signer: null });
        services.output.stderr(`${savedLine(file, saved, cluster)}\n`);
        if (signingKey !== undefined) services.output.stderr(`signed with ${signingKey}: ${signatureFileOf(file)}\n`);
      },
    },
  ).finally(() => watch.close());
}

/** Reports the source of the secrets, which the plan does not contain. */
function savedLine(file: string, { id, hosts, validity }: SavedPlan, { token }: FleetCluster): string {
  const pending = hosts.filter(({ status }) => status === 'pending').length;
  const source = token === null ? 'created' : 'env' in token ? `read from ${token.env}` : `read from ${token.file}`;
  return `saved ${file}: ${pending} ${pending === 1 ? 'host' : 'hosts'} to change, plan ID ${id}, valid until ${validity.expiresAt}. The file contains no secrets; apply uses a bootstrap token that is ${source} at that time`;
}
