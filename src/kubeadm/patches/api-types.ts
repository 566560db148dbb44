import type { ObjectNode } from '../../codec/type-node.ts';
import { readTypeTable } from '../../codec/type-table.ts';

/** Kinds with a complete type definition. */
export type TypedKind = 'Pod' | 'Deployment' | 'DaemonSet';

/**
 * The type of a built-in API kind: the fields of its Go struct and how they are printed. Of the status, only
 * the fields that are printed when empty.
 * @see k8s.io/api core/v1, apps/v1 (1.36)
 */
export function apiType(kind: TypedKind): ObjectNode {
  return typeNamed(kind);
}

const typeNamed = readTypeTable(`
Pod = kind apiVersion metadata:ObjectMeta spec:PodSpec status:PodStatus
ObjectMeta = name generateName namespace selfLink uid resourceVersion generation:int64 creationTimestamp:time~ deletionTimestamp:*time
  deletionGracePeriodSeconds:*int64 labels:{}string annotations:{}string ownerReferences:[]OwnerReference finalizers:[]string
PodSpec = volumes:[]Volume initContainers:[]Container containers:[]Container! ephemeralContainers:[]EphemeralContainer restartPolicy
  terminationGracePeriodSeconds:*int64 activeDeadlineSeconds:*int64 dnsPolicy nodeSelector:{}string serviceAccountName serviceAccount
  automountServiceAccountToken:*bool nodeName hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace:*bool
  securityContext:*PodSecurityContext imagePullSecrets:[]LocalObjectReference hostname subdomain affinity:*Affinity schedulerName
  tolerations:[]Toleration hostAliases:[]HostAlias priorityClassName priority:*int32 dnsConfig:*PodDNSConfig
  readinessGates:[]PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool preemptionPolicy:*string overhead:{}quantity
  topologySpreadConstraints:[]TopologySpreadConstraint setHostnameAsFQDN:*bool os:*PodOS hostUsers:*bool
  schedulingGates:[]PodSchedulingGate resourceClaims:[]PodResourceClaim resources:*ResourceRequirements hostnameOverride:*string
  schedulingGroup:*PodSchedulingGroup
PodStatus =
OwnerReference = apiVersion! kind! name! uid! controller:*bool blockOwnerDeletion:*bool
Volume = name! hostPath:*HostPathVolumeSource emptyDir:*EmptyDirVolumeSource gcePersistentDisk:*GCEPersistentDiskVolumeSource
  awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource gitRepo:*GitRepoVolumeSource secret:*SecretVolumeSource nfs:*NFSVolumeSource
  iscsi:*ISCSIVolumeSource glusterfs:*GlusterfsVolumeSource persistentVolumeClaim:*PersistentVolumeClaimVolumeSource rbd:*RBDVolumeSource
  flexVolume:*FlexVolumeSource cinder:*CinderVolumeSource cephfs:*CephFSVolumeSource flocker:*FlockerVolumeSource
  downwardAPI:*DownwardAPIVolumeSource fc:*FCVolumeSource azureFile:*AzureFileVolumeSource configMap:*ConfigMapVolumeSource
  vsphereVolume:*VsphereVirtualDiskVolumeSource quobyte:*QuobyteVolumeSource azureDisk:*AzureDiskVolumeSource
  photonPersistentDisk:*PhotonPersistentDiskVolumeSource projected:*ProjectedVolumeSource portworxVolume:*PortworxVolumeSource
  scaleIO:*ScaleIOVolumeSource storageos:*StorageOSVolumeSource csi:*CSIVolumeSource ephemeral:*EphemeralVolumeSource
  image:*ImageVolumeSource
Container = name! image command:[]string args:[]string workingDir ports:[]ContainerPort envFrom:[]EnvFromSource env:[]EnvVar
  resources:ResourceRequirements resizePolicy:[]ContainerResizePolicy restartPolicy:*string restartPolicyRules:[]ContainerRestartRule
  volumeMounts:[]VolumeMount volumeDevices:[]VolumeDevice livenessProbe:*Probe readinessProbe:*Probe startupProbe:*Probe
  lifecycle:*Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext:*SecurityContext stdin:bool
  stdinOnce:bool tty:bool
EphemeralContainer = name! image command:[]string args:[]string workingDir ports:[]ContainerPort envFrom:[]EnvFromSource env:[]EnvVar
  resources:ResourceRequirements resizePolicy:[]ContainerResizePolicy restartPolicy:*string restartPolicyRules:[]ContainerRestartRule
  volumeMounts:[]VolumeMount volumeDevices:[]VolumeDevice livenessProbe:*Probe readinessProbe:*Probe startupProbe:*Probe
  lifecycle:*Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext:*SecurityContext stdin:bool
  stdinOnce:bool tty:bool targetContainerName
PodSecurityContext = seLinuxOptions:*SELinuxOptions windowsOptions:*WindowsSecurityContextOptions runAsUser:*int64 runAsGroup:*int64
  runAsNonRoot:*bool supplementalGroups:[]int64 supplementalGroupsPolicy:*string fsGroup:*int64 sysctls:[]Sysctl
  fsGroupChangePolicy:*string seccompProfile:*SeccompProfile appArmorProfile:*AppArmorProfile seLinuxChangePolicy:*string
LocalObjectReference = name
Affinity = nodeAffinity:*NodeAffinity podAffinity:*PodAffinity podAntiAffinity:*PodAntiAffinity
Toleration = key operator value effect tolerationSeconds:*int64
HostAlias = ip! hostnames:[]string
PodDNSConfig = nameservers:[]string searches:[]string options:[]PodDNSConfigOption
PodReadinessGate = conditionType!
TopologySpreadConstraint = maxSkew:int32! topologyKey! whenUnsatisfiable! labelSelector:*LabelSelector minDomains:*int32
  nodeAffinityPolicy:*string nodeTaintsPolicy:*string matchLabelKeys:[]string
PodOS = name!
PodSchedulingGate = name!
PodResourceClaim = name! resourceClaimName:*string resourceClaimTemplateName:*string
ResourceRequirements = limits:{}quantity requests:{}quantity claims:[]ResourceClaim
PodSchedulingGroup = podGroupName:*string
HostPathVolumeSource = path! type:*string
EmptyDirVolumeSource = medium sizeLimit:*quantity
GCEPersistentDiskVolumeSource = pdName! fsType partition:int32 readOnly:bool
AWSElasticBlockStoreVolumeSource = volumeID! fsType partition:int32 readOnly:bool
GitRepoVolumeSource = repository! revision directory
SecretVolumeSource = secretName items:[]KeyToPath defaultMode:*int32 optional:*bool
NFSVolumeSource = server! path! readOnly:bool
ISCSIVolumeSource = targetPortal! iqn! lun:int32! iscsiInterface fsType readOnly:bool portals:[]string chapAuthDiscovery:bool
  chapAuthSession:bool secretRef:*LocalObjectReference initiatorName:*string
GlusterfsVolumeSource = endpoints! path! readOnly:bool
PersistentVolumeClaimVolumeSource = claimName! readOnly:bool
RBDVolumeSource = monitors:[]string! image! fsType pool user keyring secretRef:*LocalObjectReference readOnly:bool
FlexVolumeSource = driver! fsType secretRef:*LocalObjectReference readOnly:bool options:{}string
CinderVolumeSource = volumeID! fsType readOnly:bool secretRef:*LocalObjectReference
CephFSVolumeSource = monitors:[]string! path user secretFile secretRef:*LocalObjectReference readOnly:bool
FlockerVolumeSource = datasetName datasetUUID
DownwardAPIVolumeSource = items:[]DownwardAPIVolumeFile defaultMode:*int32
FCVolumeSource = targetWWNs:[]string lun:*int32 fsType readOnly:bool wwids:[]string
AzureFileVolumeSource = secretName! shareName! readOnly:bool
ConfigMapVolumeSource = name items:[]KeyToPath defaultMode:*int32 optional:*bool
VsphereVirtualDiskVolumeSource = volumePath! fsType storagePolicyName storagePolicyID
QuobyteVolumeSource = registry! volume! readOnly:bool user group tenant
AzureDiskVolumeSource = diskName! diskURI! cachingMode:*string fsType:*string readOnly:*bool kind:*string
PhotonPersistentDiskVolumeSource = pdID! fsType
ProjectedVolumeSource = sources:[]VolumeProjection! defaultMode:*int32
PortworxVolumeSource = volumeID! fsType readOnly:bool
ScaleIOVolumeSource = gateway! system! secretRef:*LocalObjectReference! sslEnabled:bool protectionDomain storagePool storageMode
  volumeName fsType readOnly:bool
StorageOSVolumeSource = volumeName volumeNamespace fsType readOnly:bool secretRef:*LocalObjectReference
CSIVolumeSource = driver! readOnly:*bool fsType:*string volumeAttributes:{}string nodePublishSecretRef:*LocalObjectReference
EphemeralVolumeSource = volumeClaimTemplate:*PersistentVolumeClaimTemplate
ImageVolumeSource = reference pullPolicy
ContainerPort = name hostPort:int32 containerPort:int32! protocol hostIP
EnvFromSource = prefix configMapRef:*ConfigMapEnvSource secretRef:*SecretEnvSource
EnvVar = name! value valueFrom:*EnvVarSource
ContainerResizePolicy = resourceName! restartPolicy!
ContainerRestartRule = action exitCodes:*ContainerRestartRuleOnExitCodes
VolumeMount = name! readOnly:bool recursiveReadOnly:*string mountPath! subPath mountPropagation:*string subPathExpr
VolumeDevice = name! devicePath!
Probe = exec:*ExecAction httpGet:*HTTPGetAction tcpSocket:*TCPSocketAction grpc:*GRPCAction initialDelaySeconds:int32 timeoutSeconds:int32
  periodSeconds:int32 successThreshold:int32 failureThreshold:int32 terminationGracePeriodSeconds:*int64
Lifecycle = postStart:*LifecycleHandler preStop:*LifecycleHandler stopSignal:*string
SecurityContext = capabilities:*Capabilities privileged:*bool seLinuxOptions:*SELinuxOptions windowsOptions:*WindowsSecurityContextOptions
  runAsUser:*int64 runAsGroup:*int64 runAsNonRoot:*bool readOnlyRootFilesystem:*bool allowPrivilegeEscalation:*bool procMount:*string
  seccompProfile:*SeccompProfile appArmorProfile:*AppArmorProfile
SELinuxOptions = user role type level
WindowsSecurityContextOptions = gmsaCredentialSpecName:*string gmsaCredentialSpec:*string runAsUserName:*string hostProcess:*bool
Sysctl = name! value!
SeccompProfile = type! localhostProfile:*string
AppArmorProfile = type! localhostProfile:*string
NodeAffinity = requiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
PodAffinity = requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
  preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAntiAffinity = requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
  preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodDNSConfigOption = name value:*string
LabelSelector = matchLabels:{}string matchExpressions:[]LabelSelectorRequirement
ResourceClaim = name! request
KeyToPath = key! path! mode:*int32
DownwardAPIVolumeFile = path! fieldRef:*ObjectFieldSelector resourceFieldRef:*ResourceFieldSelector mode:*int32
VolumeProjection = secret:*SecretProjection downwardAPI:*DownwardAPIProjection configMap:*ConfigMapProjection
  serviceAccountToken:*ServiceAccountTokenProjection clusterTrustBundle:*ClusterTrustBundleProjection
  podCertificate:*PodCertificateProjection
PersistentVolumeClaimTemplate = metadata:ObjectMeta spec:PersistentVolumeClaimSpec!
ConfigMapEnvSource = name optional:*bool
SecretEnvSource = name optional:*bool
EnvVarSource = fieldRef:*ObjectFieldSelector resourceFieldRef:*ResourceFieldSelector configMapKeyRef:*ConfigMapKeySelector
  secretKeyRef:*SecretKeySelector fileKeyRef:*FileKeySelector
ContainerRestartRuleOnExitCodes = operator values:[]int32
ExecAction = command:[]string
HTTPGetAction = path port:intOrString! host scheme httpHeaders:[]HTTPHeader
TCPSocketAction = port:intOrString! host
GRPCAction = port:int32! service:*string!
LifecycleHandler = exec:*ExecAction httpGet:*HTTPGetAction tcpSocket:*TCPSocketAction sleep:*SleepAction
Capabilities = add:[]string drop:[]string
NodeSelector = nodeSelectorTerms:[]NodeSelectorTerm!
PreferredSchedulingTerm = weight:int32! preference:NodeSelectorTerm!
PodAffinityTerm = labelSelector:*LabelSelector namespaces:[]string topologyKey! namespaceSelector:*LabelSelector matchLabelKeys:[]string
  mismatchLabelKeys:[]string
WeightedPodAffinityTerm = weight:int32! podAffinityTerm:PodAffinityTerm!
LabelSelectorRequirement = key! operator! values:[]string
ObjectFieldSelector = apiVersion fieldPath!
ResourceFieldSelector = containerName resource! divisor:quantity
SecretProjection = name items:[]KeyToPath optional:*bool
DownwardAPIProjection = items:[]DownwardAPIVolumeFile
ConfigMapProjection = name items:[]KeyToPath optional:*bool
ServiceAccountTokenProjection = audience expirationSeconds:*int64 path!
ClusterTrustBundleProjection = name:*string signerName:*string labelSelector:*LabelSelector optional:*bool path!
PodCertificateProjection = signerName keyType maxExpirationSeconds:*int32 credentialBundlePath keyPath certificateChainPath
  userAnnotations:{}string
PersistentVolumeClaimSpec = accessModes:[]string selector:*LabelSelector resources:VolumeResourceRequirements volumeName
  storageClassName:*string volumeMode:*string dataSource:*TypedLocalObjectReference dataSourceRef:*TypedObjectReference
  volumeAttributesClassName:*string
ConfigMapKeySelector = name key! optional:*bool
SecretKeySelector = name key! optional:*bool
FileKeySelector = volumeName! path! key! optional:*bool
HTTPHeader = name! value!
SleepAction = seconds:int64!
NodeSelectorTerm = matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement
VolumeResourceRequirements = limits:{}quantity requests:{}quantity
TypedLocalObjectReference = apiGroup:*string! kind! name!
TypedObjectReference = apiGroup:*string! kind! name! namespace:*string
NodeSelectorRequirement = key! operator! values:[]string
Deployment = kind apiVersion metadata:ObjectMeta spec:DeploymentSpec status:DeploymentStatus
DeploymentSpec = replicas:*int32 selector:*LabelSelector! template:PodTemplateSpec! strategy:DeploymentStrategy minReadySeconds:int32
  revisionHistoryLimit:*int32 paused:bool progressDeadlineSeconds:*int32
DeploymentStatus =
PodTemplateSpec = metadata:ObjectMeta spec:PodSpec
DeploymentStrategy = type rollingUpdate:*RollingUpdateDeployment
RollingUpdateDeployment = maxUnavailable:*intOrString maxSurge:*intOrString
DaemonSet = kind apiVersion metadata:ObjectMeta spec:DaemonSetSpec status:DaemonSetStatus
DaemonSetSpec = selector:*LabelSelector! template:PodTemplateSpec! updateStrategy:DaemonSetUpdateStrategy minReadySeconds:int32
  revisionHistoryLimit:*int32
DaemonSetStatus = currentNumberScheduled:int32! numberMisscheduled:int32! desiredNumberScheduled:int32! numberReady:int32!
DaemonSetUpdateStrategy = type rollingUpdate:*RollingUpdateDaemonSet
RollingUpdateDaemonSet = maxUnavailable:*intOrString maxSurge:*intOrString
`);
