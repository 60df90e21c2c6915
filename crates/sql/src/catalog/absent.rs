//! Tables of `pg_catalog` and `information_schema` about things that there are none of here: programs read them all the same.

use super::View;
use crate::value::Value;

fn nothing(_: &View<'_>) -> Vec<Vec<Value>> {
    Vec::new()
}

crate::catalog::virtuals! {
    pg_catalog.pg_matviews [schemaname: Text, matviewname: Text, matviewowner: Text, definition: Text] => nothing;
    pg_catalog.pg_shdescription [objoid: Int8, classoid: Int8, description: Text] => nothing;
    pg_catalog.pg_inherits [inhrelid: Int8, inhparent: Int8, inhseqno: Int8, inhdetachpending: Bool] => nothing;
    pg_catalog.pg_partitioned_table [partrelid: Int8, partstrat: Text, partnatts: Int8, partdefid: Int8, partclass: Array] => nothing;
    pg_catalog.pg_trigger [oid: Int8, tgrelid: Int8, tgparentid: Int8, tgname: Text, tgfoid: Int8, tgtype: Int8, tgenabled: Text, tgisinternal: Bool, tgconstraint: Int8] => nothing;
    pg_catalog.pg_range [rngtypid: Int8, rngsubtype: Int8, rngmultitypid: Int8, rngcollation: Int8, rngsubopc: Int8, rngcanonical: Text, rngsubdiff: Text] => nothing;
    pg_catalog.pg_proc [
        oid: Int8, proname: Text, pronamespace: Int8, proowner: Int8, prolang: Int8, prokind: Text, proretset: Bool, pronargs: Int8, prorettype: Int8,
        proargtypes: Array, prosrc: Text, proacl: Array,
    ] => nothing;
    pg_catalog.pg_policy [oid: Int8, polname: Text, polrelid: Int8, polcmd: Text, polpermissive: Bool, polroles: Array, polqual: Text, polwithcheck: Text] => nothing;
    pg_catalog.pg_publication [oid: Int8, pubname: Text, pubowner: Int8, puballtables: Bool, pubinsert: Bool, pubupdate: Bool, pubdelete: Bool, pubtruncate: Bool, pubviaroot: Bool] => nothing;
    pg_catalog.pg_publication_rel [oid: Int8, prpubid: Int8, prrelid: Int8, prqual: Text, prattrs: Array] => nothing;
    pg_catalog.pg_publication_namespace [oid: Int8, pnpubid: Int8, pnnspid: Int8] => nothing;
    pg_catalog.pg_statistic_ext [oid: Int8, stxrelid: Int8, stxname: Text, stxnamespace: Int8, stxowner: Int8, stxstattarget: Int8, stxkeys: Array, stxkind: Array] => nothing;
    pg_catalog.pg_extension [oid: Int8, extname: Text, extowner: Int8, extnamespace: Int8, extrelocatable: Bool, extversion: Text, extconfig: Array, extcondition: Array] => nothing;
    pg_catalog.pg_foreign_table [ftrelid: Int8, ftserver: Int8, ftoptions: Array] => nothing;
    pg_catalog.pg_foreign_server [oid: Int8, srvname: Text, srvowner: Int8, srvfdw: Int8, srvtype: Text, srvversion: Text, srvacl: Array, srvoptions: Array] => nothing;
    pg_catalog.pg_auth_members [roleid: Int8, member: Int8, grantor: Int8, admin_option: Bool] => nothing;
    pg_catalog.pg_tablespace [oid: Int8, spcname: Text, spcowner: Int8] => nothing;
    pg_catalog.pg_prepared_xacts [transaction: Int8, gid: Text, prepared: TimestampTz, owner: Text, database: Text] => nothing;
    pg_catalog.pg_db_role_setting [setdatabase: Int8, setrole: Int8, setconfig: Array] => nothing;
    information_schema.routines [specific_catalog: Text, specific_schema: Text, specific_name: Text, routine_name: Text, routine_type: Text] => nothing;
    pg_catalog.pg_init_privs [objoid: Int8, classoid: Int8, objsubid: Int8, privtype: Text, initprivs: Array] => nothing;
    pg_catalog.pg_language [
        oid: Int8, lanname: Text, lanowner: Int8, lanispl: Bool, lanpltrusted: Bool, lanplcallfoid: Int8, laninline: Int8, lanvalidator: Int8, lanacl: Array,
    ] => nothing;
    pg_catalog.pg_operator [
        oid: Int8, oprname: Text, oprnamespace: Int8, oprowner: Int8, oprkind: Text, oprleft: Int8, oprright: Int8, oprresult: Int8, oprcode: Int8,
    ] => nothing;
    pg_catalog.pg_opfamily [oid: Int8, opfmethod: Int8, opfname: Text, opfnamespace: Int8, opfowner: Int8] => nothing;
    pg_catalog.pg_amop [
        oid: Int8, amopfamily: Int8, amoplefttype: Int8, amoprighttype: Int8, amopstrategy: Int8, amoppurpose: Text, amopopr: Int8, amopmethod: Int8,
        amopsortfamily: Int8,
    ] => nothing;
    pg_catalog.pg_amproc [
        oid: Int8, amprocfamily: Int8, amproclefttype: Int8, amprocrighttype: Int8, amprocnum: Int8, amproc: Int8,
    ] => nothing;
    pg_catalog.pg_ts_parser [
        oid: Int8, prsname: Text, prsnamespace: Int8, prsstart: Int8, prstoken: Int8, prsend: Int8, prsheadline: Int8, prslextype: Int8,
    ] => nothing;
    pg_catalog.pg_ts_template [oid: Int8, tmplname: Text, tmplnamespace: Int8, tmplinit: Int8, tmpllexize: Int8] => nothing;
    pg_catalog.pg_ts_dict [
        oid: Int8, dictname: Text, dictnamespace: Int8, dictowner: Int8, dicttemplate: Int8, dictinitoption: Text,
    ] => nothing;
    pg_catalog.pg_ts_config [oid: Int8, cfgname: Text, cfgnamespace: Int8, cfgowner: Int8, cfgparser: Int8] => nothing;
    pg_catalog.pg_foreign_data_wrapper [
        oid: Int8, fdwname: Text, fdwowner: Int8, fdwhandler: Int8, fdwvalidator: Int8, fdwacl: Array, fdwoptions: Array,
    ] => nothing;
    pg_catalog.pg_user_mappings [umid: Int8, srvid: Int8, srvname: Text, umuser: Int8, usename: Text, umoptions: Array] => nothing;
    pg_catalog.pg_default_acl [oid: Int8, defaclrole: Int8, defaclnamespace: Int8, defaclobjtype: Text, defaclacl: Array] => nothing;
    pg_catalog.pg_conversion [oid: Int8, conname: Text, connamespace: Int8, conowner: Int8, contoencoding: Int8, conforencoding: Int8, condefault: Bool] => nothing;
    pg_catalog.pg_cast [
        oid: Int8, castsource: Int8, casttarget: Int8, castfunc: Int8, castcontext: Text, castmethod: Text,
    ] => nothing;
    pg_catalog.pg_transform [oid: Int8, trftype: Int8, trflang: Int8, trffromsql: Int8, trftosql: Int8] => nothing;
    pg_catalog.pg_event_trigger [
        oid: Int8, evtname: Text, evtevent: Text, evtowner: Int8, evtfoid: Int8, evtenabled: Text, evttags: Array,
    ] => nothing;
    pg_catalog.pg_subscription [
        oid: Int8, subdbid: Int8, subname: Text, subowner: Int8, subenabled: Bool, subbinary: Bool, substream: Bool, subtwophasestate: Text,
        subdisableonerr: Bool, subconninfo: Text, subslotname: Text, subsynccommit: Text, subpublications: Array,
    ] => nothing;
    pg_catalog.pg_largeobject_metadata [oid: Int8, lomowner: Int8, lomacl: Array] => nothing;
    pg_catalog.pg_seclabels [objoid: Int8, classoid: Int8, objsubid: Int8, objtype: Text, provider: Text, label: Text] => nothing;
    pg_catalog.pg_seclabel [objoid: Int8, classoid: Int8, objsubid: Int8, provider: Text, label: Text] => nothing;
    pg_catalog.pg_shseclabel [objoid: Int8, classoid: Int8, provider: Text, label: Text] => nothing;
}
